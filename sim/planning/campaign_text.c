#include "sim/planning/campaign_text.h"

#include "base/units.h"

#include <math.h>

const char *ms_large_text(ms_arena *arena, double value, const char *between)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
    int at = 0;
    for (; value >= 999.95 && at + 1 < (int)(sizeof prefixes / sizeof *prefixes); at++)
        value /= 1e3;
    return ms_arena_printf(arena, "%.4g%s%s", value, between, prefixes[at]);
}

const char *ms_long_time_text(ms_arena *arena, double seconds)
{
    char text[64];
    if (seconds >= 2.0 * MS_DAY_S)
        return ms_arena_printf(arena, "%.1f days", seconds / MS_DAY_S);
    if (seconds >= 2.0 * 3600.0)
        return ms_arena_printf(arena, "%.1f h", seconds / 3600.0);
    if (seconds >= 120.0)
        return ms_arena_printf(arena, "%.1f min", seconds / 60.0);
    return ms_arena_printf(
        arena, "%s", ms_format_quantity(text, sizeof text, seconds, MS_UNIT_SECONDS));
}

/* ---- limits ---- */

/* A figure of a campaign against its limit; the ends are those of its interval. */
typedef struct limited {
    double limit, value, low, high;
    const char *(*text)(ms_arena *arena, double value);
} limited;

static const char *money_text(ms_arena *arena, double value)
{
    return ms_large_text(arena, value, "");
}

static const char *verdict(ms_arena *arena, const limited *l)
{
    if (isnan(l->limit) || isnan(l->value))
        return NULL;
    if (l->value > l->limit) {
        const char *low =
            l->low <= l->limit
                ? ms_arena_printf(arena, ", kept at the lower end of the interval (%s)",
                                  l->text(arena, l->low))
                : "";
        return ms_arena_printf(arena, "exceeded by %s%s",
                               l->text(arena, l->value - l->limit), low);
    }
    return l->high > l->limit
               ? ms_arena_printf(arena,
                                 "kept at the estimate, missed at the upper end of the "
                                 "interval (%s)",
                                 l->text(arena, l->high))
               : "kept";
}

const char *ms_deadline_text(ms_arena *arena, const ms_campaign_answer *answer)
{
    const ms_campaign *c = &answer->campaign;
    const limited time = {answer->deadline_s, c->elapsed_s, c->elapsed_low_s,
                          c->elapsed_high_s, ms_long_time_text};
    return verdict(arena, &time);
}

const char *ms_budget_text(ms_arena *arena, const ms_campaign_answer *answer)
{
    const ms_campaign *c = &answer->campaign;
    const limited money = {answer->budget, c->cost,
                           c->cost * c->elapsed_low_s / c->elapsed_s,
                           c->cost * c->elapsed_high_s / c->elapsed_s, money_text};
    return verdict(arena, &money);
}

const char *ms_broken_limit_text(ms_arena *arena, const ms_campaign_answer *answer)
{
    const ms_campaign *c = &answer->campaign;
    if (!ms_campaign_advances(c))
        return "makes no progress";
    if (c->elapsed_s > answer->deadline_s)
        return ms_arena_printf(
            arena, "late by %s",
            ms_long_time_text(arena, c->elapsed_s - answer->deadline_s));
    if (c->cost > answer->budget)
        return ms_arena_printf(arena, "over budget by %s",
                               money_text(arena, c->cost - answer->budget));
    return NULL;
}

const char *ms_quantity_text(ms_arena *arena, double value, ms_unit unit)
{
    char text[48];
    if (unit != MS_UNIT_COUNT)
        return ms_arena_strdup(arena, ms_format_quantity(text, sizeof text, value, unit));
    return value >= 1e6 ? ms_large_text(arena, value, "")
                        : ms_arena_printf(arena, "%.4g", value);
}
