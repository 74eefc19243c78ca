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
