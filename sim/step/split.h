/* The default distribution of the model's layers over virtual pipeline stages. */
#ifndef MS_SIM_STEP_SPLIT_H
#define MS_SIM_STEP_SPLIT_H

#include "sim/step/workload.h"

/* Fills `layers` (num_stages), the number of layers of each virtual stage, as described
 * at ms_workload_split. in_pairs: stages s and num_stages - 1 - s share a rank, and
 * num_stages is even. */
void ms_default_split(const ms_workload *workload, const ms_bill_set *bills,
                      int num_stages, bool in_pairs, long *layers);

#endif
