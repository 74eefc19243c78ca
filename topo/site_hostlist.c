#include "topo/site_hostlist.h"

#include <ctype.h>
#include <string.h>

#define MAX_DIGITS 9

/* A range "001-020", or a number. */
typedef struct range {
    long low, high;
    int width; /* digits of each number at least */
} range;

static bool read_digits(const char **at, const char *end, long *out)
{
    const char *from = *at;
    *out = 0;
    for (; *at < end && isdigit((unsigned char)**at) != 0; ++*at) {
        if (*at - from >= MAX_DIGITS)
            return false;
        *out = 10 * *out + (**at - '0');
    }
    return *at > from;
}

static bool read_range(const char **at, const char *end, range *out)
{
    const char *from = *at;
    if (!read_digits(at, end, &out->low))
        return false;
    out->width = (int)(*at - from);
    out->high = out->low;
    if (*at < end && **at == '-') {
        ++*at;
        if (!read_digits(at, end, &out->high))
            return false;
    }
    return out->high >= out->low;
}

/* Reads a bracket at *at; returns its count of numbers, 0 if it is malformed. */
static long read_group(const char **at, const char *end)
{
    long num = 0;
    range numbers;
    do {
        ++*at;
        if (!read_range(at, end, &numbers))
            return 0;
        num += numbers.high - numbers.low + 1;
    } while (*at < end && **at == ',' && num <= MS_MAX_HOST_NAMES);
    if (*at >= end || **at != ']')
        return 0;
    ++*at;
    return num;
}

bool ms_host_item_next(const char **at, const char *end, ms_host_item *out,
                       const char **fault)
{
    *fault = NULL;
    if (*at >= end)
        return false;
    *out = (ms_host_item){.text = *at, .num = 1};
    while (*at < end && **at != ',') {
        if (**at != '[') {
            ++*at;
            continue;
        }
        const char *group = *at;
        long num = out->num_groups < MS_MAX_HOST_GROUPS ? read_group(at, end) : 0;
        if (num == 0 || num > MS_MAX_HOST_NAMES / out->num) {
            *fault = num == 0
                         ? "a bracket must hold numbers and ranges, such as [01-18,20]"
                         : "more than a million names";
            return false;
        }
        out->groups[out->num_groups++] =
            (ms_host_group){.text = group, .end = *at, .num = num, .range = group};
        out->num *= num;
    }
    out->end = *at;
    bool ends_in_comma = *at < end && ++*at == end;
    if (out->end > out->text && !ends_in_comma)
        return true;
    *at = out->end;
    *fault = "a name is empty";
    return false;
}

/* The index-th number of a bracket as text, sought from the range that was read last. */
static const char *number_text(ms_arena *arena, ms_host_group *group, long index)
{
    range numbers;
    if (index < group->before) {
        group->range = group->text;
        group->before = 0;
    }
    for (;;) {
        const char *at = group->range + 1;
        if (!read_range(&at, group->end, &numbers))
            return ""; /* ms_host_item_next has read the bracket, so it holds the index */
        long num = numbers.high - numbers.low + 1;
        if (index < group->before + num)
            break;
        group->before += num;
        group->range = at;
    }
    return ms_arena_printf(arena, "%0*ld", numbers.width,
                           numbers.low + index - group->before);
}

const char *ms_host_item_name(ms_arena *arena, ms_host_item *item, long index)
{
    const char *name = "", *at = item->text;
    long rest = item->num;
    for (int i = 0; i < item->num_groups; i++) {
        ms_host_group *group = &item->groups[i];
        rest /= group->num;
        const char *number = number_text(arena, group, index / rest % group->num);
        name =
            ms_arena_printf(arena, "%s%.*s%s", name, (int)(group->text - at), at, number);
        at = group->end;
    }
    return ms_arena_printf(arena, "%s%.*s", name, (int)(item->end - at), at);
}
