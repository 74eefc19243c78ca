#include "sim/planning/sizes.h"

#include "base/units.h"

#include <string.h>

typedef struct reading {
    ms_ctx *cx;
    const char *option, *text; /* option name and its whole text, for messages */
    long most;
} reading;

static ms_status refuse(const reading *r, const char *why)
{
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE, "%s is \"%s\": %s", r->option, r->text, why);
    return ms_hint(r->cx, "%s 64..4096, or a list such as %s 64,96,128", r->option,
                   r->option);
}

static ms_status read_size(const reading *r, const char *text, size_t length, long *out)
{
    ms_arena *arena = r->cx->arena;
    const char *word = ms_arena_strndup(arena, text, length);
    double value;
    if (length == 0)
        return refuse(r, "a number is missing");
    if (!ms_parse_quantity(word, MS_UNIT_COUNT, &value) || value < 1.0 ||
        value > (double)r->most || (double)(long)value != value)
        return refuse(r, ms_arena_printf(arena, "\"%s\" is no whole number from 1 to %ld",
                                         word, r->most));
    *out = (long)value;
    return MS_OK;
}

static ms_status add_size(const reading *r, ms_sizes *out, long size)
{
    if (out->num == MS_MAX_SIZES)
        return refuse(r,
                      ms_arena_printf(r->cx->arena, "more than %d sizes", MS_MAX_SIZES));
    if (out->num > 0 && size <= out->sizes[out->num - 1])
        return refuse(r, ms_arena_printf(r->cx->arena,
                                         "%ld comes after %ld, sizes must ascend", size,
                                         out->sizes[out->num - 1]));
    out->sizes[out->num++] = size;
    return MS_OK;
}

static ms_status read_range(const reading *r, const char *dots, ms_sizes *out)
{
    long low = 0, high = 0;
    MS_TRY(read_size(r, r->text, (size_t)(dots - r->text), &low));
    MS_TRY(read_size(r, dots + 2, strlen(dots + 2), &high));
    if (low > high)
        return refuse(r, "the range ends before it begins");
    for (long size = low; size <= high; size *= 2)
        MS_TRY(add_size(r, out, size));
    long last = out->sizes[out->num - 1];
    if (last == high)
        return MS_OK;
    ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
            "%s is \"%s\": doubling %ld gives %ld, then %ld, but not %ld", r->option,
            r->text, low, last, 2 * last, high);
    return ms_hint(r->cx, "%s %ld..%ld, or a list of sizes", r->option, low, last);
}

ms_status ms_sizes_parse(ms_ctx *cx, const char *option, const char *text, long most,
                         ms_sizes *out)
{
    reading r = {cx, option, text, most};
    *out = (ms_sizes){0};
    const char *dots = strstr(text, "..");
    if (dots != NULL)
        return read_range(&r, dots, out);
    for (const char *rest = text; rest != NULL;) {
        size_t length = strcspn(rest, ",");
        long size = 0;
        MS_TRY(read_size(&r, rest, length, &size));
        MS_TRY(add_size(&r, out, size));
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return MS_OK;
}
