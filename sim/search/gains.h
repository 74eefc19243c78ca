/* Choices that a search takes only where they are allowed, because they change numbers or
 * need the host's memory, and their effect on a plan that does without them. */
#ifndef MS_SIM_SEARCH_GAINS_H
#define MS_SIM_SEARCH_GAINS_H

#include "sim/step/workload.h"

/* A value of a choice, and the name that allows it; a name may allow several. */
typedef struct ms_allowance {
    const char *name;
    ms_choice choice;
    double value;
} ms_allowance;

/* The least share of the step time for which a search takes or advises such a choice. */
#define MS_LEAST_GAIN_FRAC 0.005

#define MS_NUM_ALLOWANCES 7
/* All of them; those of one name follow each other. */
extern const ms_allowance ms_allowances[MS_NUM_ALLOWANCES];

/* The flag that takes it: "--precision=fp8". */
char *ms_allowance_flag(ms_arena *arena, const ms_allowance *allowance);

/* The prediction of a plan with one more choice, by replay. */
typedef struct ms_gain {
    const ms_allowance *allowance;
    double step_s,
        gain_frac; /* gain_frac: of the plan's own step time; below 0: slower */
    double peak_bytes, freed_bytes;
    bool fits; /* whether the changed plan fits, by the rule of its search */
} ms_gain;

/* Whether it is a gain in step time; otherwise it is one in memory. */
bool ms_gain_is_time(const ms_gain *gain);

/* Predicts `plan` with each allowance that the device and the framework accept, and lists
 * for each name the one that gains most, or none: in step time if that is half a percent,
 * otherwise in memory if that is half a GiB and the step at most 5 % longer. step_s, peak_bytes: of the plan itself, by replay. The choices of a plan that the search made for it stay as they are, so that a
 * search with --allow may gain more. Returns the number of gains. */
int ms_find_gains(const ms_workload *workload, const ms_plan *plan, double step_s,
                  double peak_bytes, ms_gain out[MS_NUM_ALLOWANCES]);

#endif
