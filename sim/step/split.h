/* The default distribution of the model's layers over virtual pipeline stages. */
#ifndef MS_SIM_STEP_SPLIT_H
#define MS_SIM_STEP_SPLIT_H

#include "sim/step/workload.h"

/* Fills `layers` (num_stages), the number of layers of each virtual stage, as described
 * at ms_workload_split. in_pairs: stages s and num_stages - 1 - s share a rank, and
 * num_stages is even. */
void ms_default_split(const ms_workload *workload, const ms_bill_set *bills,
                      int num_stages, bool in_pairs, long *layers);

/* Whether layers of stages follow the speed and the memory of their devices: the cluster
 * has groups, and the stack's framework takes layers by stage. */
bool ms_layers_follow_devices(const ms_workload *workload);
/* Whether those of one plan do: its pipeline ranks have devices of different groups. */
bool ms_divides_layers(const ms_workload *workload, const ms_schedule_shape *shape,
                       const unsigned char *kinds);

/* ms_default_split for ranks with different kinds of devices (ms_split.kinds): the largest
 * stage time, each on its own devices, is as small as possible, then the sum of squares of
 * all of them; found by dynamic programming over all splits without empty stages. Layers
 * that do not follow their devices (ms_divides_layers) are split by ms_default_split here,
 * too; from those that do, ms_divide_layers begins. */
void ms_mixed_split(ms_workload *workload, const ms_bill_set *bills,
                    const ms_schedule_shape *shape, const unsigned char *kinds,
                    long *layers);

#endif
