/* Layers of the plans that a search found on a mixed cluster. The exploration divides
 * layers by compute alone (ms_mixed_split), for which its bounds and its certificate hold;
 * what it found is then divided as ms_planned_open does. docs/formulas 5.8. */
#ifndef MS_SIM_SEARCH_FOUND_LAYERS_H
#define MS_SIM_SEARCH_FOUND_LAYERS_H

#include "sim/search/explore.h"

/* Whether plans of the space may have layers that follow their devices. */
bool ms_space_divides_layers(const ms_workload *workload, const ms_space *space);

/* Divides the layers of `num` plans and sets their step times and peaks. A plan states its
 * layers, in the arena, if a prediction of the plan alone would have others: where its
 * memory rule is not the default, or keeps the layers that balance compute. */
void ms_found_divide(ms_workload *workload, ms_arena *arena, ms_found *found, int num);

/* Divides the layers of `plan`, which does not fit with balanced ones; whether it fits
 * then, and its framework takes it. */
bool ms_found_make_fit(ms_workload *workload, ms_arena *arena, const ms_plan *plan,
                       ms_found *out);

#endif
