/* Reads the question that the user gives with --why. */
#include "sim/search/why.h"

#include <string.h>

static ms_status refuse_comparison(ms_ctx *cx, const char *text)
{
    ms_status status =
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--why is \"%s\", must be CHOICE=VALUE", text);
    ms_hint(cx, "for example tp=8; what is left out is searched");
    return status;
}

/* Length of the first "name=value" in `text`. The value has commas only if `is_order`. */
static size_t item_length(const char *text, bool is_order)
{
    size_t length = strcspn(text, ",");
    while (is_order && text[length] == ',') {
        size_t more = strcspn(text + length + 1, ",");
        const char *equals = memchr(text + length + 1, '=', more);
        if (equals != NULL)
            break;
        length += 1 + more;
    }
    return length;
}

static bool is_order(const char *text, const char **axes)
{
    static const char name[] = "order";
    text += strspn(text, " \t");
    if (strncmp(text, name, strlen(name)) != 0)
        return false;
    text += strlen(name);
    text += strspn(text, " \t");
    *axes = text + 1;
    return *text == '=';
}

ms_status ms_why_question_read(ms_ctx *cx, const char *text, const ms_plan *base,
                               const ms_stack *stack, const char **order,
                               ms_why_question *out)
{
    *order = NULL;
    *out = (ms_why_question){.text = text, .asked = ms_space_all(base, stack)};
    for (const char *rest = text; rest != NULL;) {
        const char *axes;
        bool ordered = is_order(rest, &axes);
        size_t length = item_length(rest, ordered);
        const char *item = ms_arena_strndup(cx->arena, rest, length);
        if (ordered && *order != NULL)
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "--why gives order twice");
        if (ordered)
            *order = ms_arena_strndup(cx->arena, axes, (size_t)(rest + length - axes));
        else if (strpbrk(item, "<>") != NULL)
            return refuse_comparison(cx, item);
        else
            MS_TRY(ms_space_limit(cx, &out->asked, item));
        rest = rest[length] == ',' ? rest + length + 1 : NULL;
    }
    return MS_OK;
}
