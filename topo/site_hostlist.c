#include "topo/site_hostlist.h"

#include <ctype.h>
#include <string.h>

#define MAX_NAMES  10000000L
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
    } while (*at < end && **at == ',' && num <= MAX_NAMES);
    if (*at >= end || **at != ']')
        return 0;
    ++*at;
    return num;
}

bool ms_host_item_next(const char **at, const char *end, ms_host_item *out,
                       const char **fault)
{
    *fault = NULL;
    if (*at < end && **at == ',')
        ++*at;
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
        if (num == 0 || num > MAX_NAMES / out->num) {
            *fault = num == 0
                         ? "a bracket must hold numbers and ranges, such as [01-18,20]"
                         : "more than 10 million names";
            return false;
        }
        out->groups[out->num_groups] = group;
        out->counts[out->num_groups++] = num;
        out->num *= num;
    }
    out->end = *at;
    if (out->end > out->text)
        return true;
    *fault = "a name is empty";
    return false;
}

/* The index-th number of a bracket as text; moves *at behind the bracket. */
static const char *number_text(ms_arena *arena, const char **at, const char *end,
                               long index)
{
    const char *text = "";
    range numbers;
    do {
        ++*at;
        if (!read_range(at, end, &numbers))
            break;
        long num = numbers.high - numbers.low + 1;
        if (index >= 0 && index < num)
            text = ms_arena_printf(arena, "%0*ld", numbers.width, numbers.low + index);
        index -= num;
    } while (*at < end && **at == ',');
    ++*at;
    return text;
}

const char *ms_host_item_name(ms_arena *arena, const ms_host_item *item, long index)
{
    const char *name = "", *at = item->text;
    long rest = item->num;
    for (int i = 0; i < item->num_groups; i++) {
        rest /= item->counts[i];
        const char *number_at = item->groups[i];
        const char *number =
            number_text(arena, &number_at, item->end, index / rest % item->counts[i]);
        name = ms_arena_printf(arena, "%s%.*s%s", name, (int)(item->groups[i] - at), at,
                               number);
        at = number_at;
    }
    return ms_arena_printf(arena, "%s%.*s", name, (int)(item->end - at), at);
}
