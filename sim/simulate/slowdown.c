/* Reads the argument of --slow: a slowdown of a rank or a link. */
#include "sim/simulate/simulation.h"

#include "base/units.h"

#include <stdlib.h>
#include <string.h>

static ms_status refuse(ms_ctx *cx, const char *text, const char *problem)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "slowdown \"%s\": %s", text, problem);
    ms_hint(cx, "write rank=5:1.3 for a rank that takes 1.3 times as long to compute, or "
                "\"link=nic 12:2\" for a link that takes twice as long");
    return MS_EINPUT;
}

/* Reads a rank number written in digits only; false if the text is no such number. */
static bool read_rank(const char *text, size_t length, long *out)
{
    *out = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || *out > 100000000)
            return false;
        *out = *out * 10 + (text[i] - '0');
    }
    return length > 0;
}

ms_status ms_slowdown_read(ms_ctx *cx, const char *text, ms_slowdown *out)
{
    bool is_link = strncmp(text, "link=", 5) == 0;
    if (!is_link && strncmp(text, "rank=", 5) != 0)
        return refuse(cx, text, "it is neither a rank nor a link");
    const char *what = text + 5, *colon = strrchr(what, ':');
    *out = (ms_slowdown){.is_link = is_link, .rank = -1};
    if (colon == NULL)
        return refuse(cx, text, "the factor is missing");
    if (!ms_parse_quantity(colon + 1, MS_UNIT_COUNT, &out->factor) || out->factor <= 0.0)
        return refuse(cx, text, "the factor is no positive number");
    if (out->factor > 1e6 || out->factor < 1e-6)
        return refuse(cx, text, "the factor is not between 0.000001 and 1000000");
    size_t length = (size_t)(colon - what);
    if (!is_link)
        return read_rank(what, length, &out->rank)
                   ? MS_OK
                   : refuse(cx, text, "the rank is no whole number");
    if (length == 0)
        return refuse(cx, text, "the link has no name");
    out->link = ms_arena_strndup(cx->arena, what, length);
    return MS_OK;
}
