/* The default distribution of the model's layers over virtual pipeline stages. */
#ifndef MS_SIM_STEP_SPLIT_H
#define MS_SIM_STEP_SPLIT_H

#include "sim/step/workload.h"

/* Fills `layers` (num_stages), the number of layers of each virtual stage, as described
 * at ms_workload_split. in_pairs: stages s and num_stages - 1 - s share a rank, and
 * num_stages is even. */
void ms_default_split(const ms_workload *workload, const ms_bill_set *bills,
                      int num_stages, bool in_pairs, long *layers);

/* Times of stages: layers a to b - 1 take prefix_s[b] - prefix_s[a] on a stage's devices. */
typedef struct ms_stage_costs {
    long num_layers, num_stages;
    const double **prefix_s; /* (num_stages): [num_layers + 1], sums of layer times */
    const double *extra_s;   /* (num_stages): of embedding and head */
    const long *most;        /* (num_stages): most layers of each; NULL: any number */
} ms_stage_costs;
/* Fills `layers` (num_stages): the largest stage time is as small as possible, then the sum
 * of squares of all of them; found by dynamic programming over all splits without empty
 * stages. `most` must sum to at least num_layers. */
void ms_balance_layers(const ms_stage_costs *costs, ms_arena *scratch, long *layers);

/* Whether the layers of a plan's stages follow the speed and the memory of their devices:
 * these are of different groups of a mixed cluster, and the stack's framework takes layers
 * by stage. */
bool ms_divides_layers(const ms_workload *workload, const ms_schedule_shape *shape,
                       const unsigned char *kinds);

/* ms_default_split for ranks with different kinds of devices (ms_split.kinds). Layers that
 * follow their devices (ms_divides_layers) are balanced by compute alone, where
 * ms_divide_layers begins. */
void ms_mixed_split(ms_workload *workload, const ms_bill_set *bills,
                    const ms_schedule_shape *shape, const unsigned char *kinds,
                    long *layers);

#endif
