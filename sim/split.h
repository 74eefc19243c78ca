/* How layers are distributed over virtual stages by default, and which stages are
 * alike. */
#ifndef MS_SIM_SPLIT_H
#define MS_SIM_SPLIT_H

#include "sim/workload.h"

/* Layers of each virtual stage (num_stages entries): see ms_workload_split. In pairs,
 * stages s and num_stages - 1 - s (an even number) share a rank. */
void ms_default_split(const ms_workload *workload, const ms_bill_set *bills,
                      int num_stages, bool in_pairs, long *layers);

#endif
