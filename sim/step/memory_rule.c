#include "sim/step/memory_rule.h"

#include <math.h>

static ms_error_class class_of(const char *stack)
{
    return (ms_error_class){stack, MS_PEAK_CLASS_GPUS, NULL};
}

ms_memory_limit ms_memory_limit_make(const ms_memory_rule *rule,
                                     const ms_error_spread *peak_spread,
                                     const char *stack, double device_bytes)
{
    double headroom_bytes =
        fmax(rule->headroom_frac * device_bytes, rule->headroom_bytes);
    ms_memory_limit limit = {.rule = *rule,
                             .limit_bytes = device_bytes - headroom_bytes,
                             .peak_factor = 1.0,
                             .knows_risk = peak_spread != NULL,
                             .best_probability = 1.0};
    if (peak_spread == NULL || !(rule->min_probability > 0.0))
        return limit;
    const ms_error_class class = class_of(stack);
    bool reached;
    limit.peak_factor =
        ms_error_spread_ratio(peak_spread, &class, rule->min_probability, &reached);
    limit.out_of_reach = !reached;
    if (!reached)
        limit.best_probability =
            ms_error_spread_frac_below(peak_spread, &class, (double)INFINITY);
    return limit;
}

double ms_needed_bytes(const ms_memory_limit *limit, double peak_bytes,
                       double outside_bytes)
{
    return peak_bytes * limit->peak_factor + outside_bytes;
}

bool ms_fits_limit(const ms_memory_limit *limit, double needed_bytes)
{
    return !limit->out_of_reach && needed_bytes <= limit->limit_bytes;
}

double ms_fits_probability(const ms_error_spread *peak_spread, const char *stack,
                           double peak_bytes, double room_bytes)
{
    const ms_error_class class = class_of(stack);
    if (peak_spread == NULL)
        return (double)NAN;
    return room_bytes > 0.0
               ? ms_error_spread_frac_below(peak_spread, &class, room_bytes / peak_bytes)
               : 0.0;
}
