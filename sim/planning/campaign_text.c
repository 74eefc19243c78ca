#include "sim/planning/campaign_text.h"

#include "base/units.h"

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

const char *ms_quantity_text(ms_arena *arena, double value, ms_unit unit)
{
    char text[48];
    if (unit != MS_UNIT_COUNT)
        return ms_arena_strdup(arena, ms_format_quantity(text, sizeof text, value, unit));
    return value >= 1e6 ? ms_large_text(arena, value, "")
                        : ms_arena_printf(arena, "%.4g", value);
}
