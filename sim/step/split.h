/* The default distribution of the model's layers over virtual pipeline stages. */
#ifndef MS_SIM_STEP_SPLIT_H
#define MS_SIM_STEP_SPLIT_H

#include "sim/step/workload.h"

/* Fills `layers` (num_stages), the number of layers of each virtual stage, as described
 * at ms_workload_split. in_pairs: stages s and num_stages - 1 - s share a rank, and
 * num_stages is even. */
void ms_default_split(const ms_workload *workload, const ms_bill_set *bills,
                      int num_stages, bool in_pairs, long *layers);

/* ms_default_split for ranks with different kinds of devices (ms_split.kinds): the largest
 * stage time, each on its own devices, is as small as possible, then the sum of squares of
 * all of them; found by dynamic programming over all splits without empty stages. A stack
 * whose framework takes no layers by stage splits by ms_default_split here, too. */
void ms_mixed_split(ms_workload *workload, const ms_bill_set *bills,
                    const ms_schedule_shape *shape, const unsigned char *kinds,
                    long *layers);

#endif
