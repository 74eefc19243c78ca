/* Single changes of a plan: one choice gets another value, and choices that depend on it
 * follow. */
#ifndef MS_SIM_EXPLAIN_PLAN_EDIT_H
#define MS_SIM_EXPLAIN_PLAN_EDIT_H

#include "sim/step/workload.h"

typedef struct ms_plan_edit {
    /* the choice that changes; MS_CHOOSE_PP to MS_CHOOSE_TP: an axis that passes a factor
     * of its size on; MS_CHOOSE_SCHEDULE and MS_CHOOSE_ZERO: also their second value */
    ms_choice choice;
    long value;  /* new value of the choice; for an axis: the factor */
    long second; /* virtual stages; reshard_after_forward; ms_plan_axis that grows */
    unsigned char order[MS_NUM_PLAN_AXES]; /* MS_CHOOSE_ORDER: new order of axes */
} ms_plan_edit;

/* Lists all edits of a plan whose results a search would try: each other value of each
 * choice, each factor of an axis given to each other axis, each order of axes that costs
 * something else. Legal and illegal ones; the list lives in the arena. Returns their
 * number. */
int ms_plan_edits(ms_arena *arena, const ms_workload *workload, const ms_plan *plan,
                  ms_plan_edit **out);

/* Applies an edit. Layers are split by default if stages change; a choice that loses its
 * effect gets its JSON default, one that gains an effect the command line's default.
 * False if the edit does not apply (an axis that the factor does not divide, a choice
 * without effect), or if the stack cannot run the result or refuses it by a rule;
 * choices that stay as in `plan` count as possible. */
bool ms_plan_edit_apply(ms_workload *workload, const ms_plan *plan,
                        const ms_plan_edit *edit, ms_plan *out);

/* The differences of two plans as text: "dp_shard 16 -> 32, tp 8 -> 4". */
const char *ms_plan_edit_text(ms_arena *arena, const ms_plan *from, const ms_plan *to);

#endif
