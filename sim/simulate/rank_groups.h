/* Process groups of the ranks of a plan with numbers, as traces of training jobs name
 * them: one for each group of ranks in which some task of a simulation communicates. */
#ifndef MS_SIM_SIMULATE_RANK_GROUPS_H
#define MS_SIM_SIMULATE_RANK_GROUPS_H

#include "sim/simulate/actors.h"
#include "sim/simulate/simulation.h"

typedef struct ms_rank_groups {
    /* number of the first group of each kind, from 1; 0: no task uses groups of the kind */
    long first_id[MS_NUM_TRAFFIC_GROUPS];
    ms_fold_axis axis[MS_NUM_TRAFFIC_GROUPS]; /* ranks of all groups of each kind */
    int *index[MS_NUM_TRAFFIC_GROUPS]; /* [kind][rank]: index of the rank's group */
} ms_rank_groups;

/* Numbers the groups of a simulation with work (MS_DETAIL_NODE). Lives in the arena. */
ms_rank_groups ms_rank_groups_make(ms_arena *arena, const ms_simulation *simulation);

/* Number of a rank's group of a kind that tasks use. */
long ms_rank_group_id(const ms_rank_groups *groups, ms_traffic_group which, long rank);
/* The ranks of that group, groups->axis[which].size of them, by position. */
const long *ms_rank_group_members(const ms_rank_groups *groups, ms_traffic_group which,
                                  long rank);
/* The rank that follows `rank` by `steps` in its group, from its end to its start. */
long ms_rank_group_neighbour(const ms_rank_groups *groups, ms_traffic_group which,
                             long rank, int steps);

#endif
