/* Actors: one simulated rank for each class of ranks that behave alike, and the
 * communication groups in which actors take part. */
#ifndef MS_SIM_SIMULATE_ACTORS_H
#define MS_SIM_SIMULATE_ACTORS_H

#include "sim/simulate/fold.h"
#include "sim/step/traffic.h"

/* Communication groups of one kind (ms_traffic_group), folded like the ranks. A meeting
 * is the set of actors (simulated ranks) that stand for the ranks of a group; groups with
 * the same set are one meeting. In a meeting of one actor all ranks behave alike. */
typedef struct ms_meetings {
    long size; /* number of ranks in one group */
    int num;
    const int *of_actor; /* (num_actors): index of the actor's meeting, 0 to num - 1 */
    const int *first;    /* (num + 1): start of each meeting in `actors` */
    const int *actors;   /* actors of all meetings, ascending within each */
} ms_meetings;

typedef struct ms_actors {
    ms_fold fold;
    int num; /* number of simulated ranks: one per class of `fold` */
    int num_pipeline_ranks;
    const int *pipeline_rank; /* (num): pipeline rank of each simulated rank */
    /* (num_pipeline_ranks + 1): index in `at` of each pipeline rank's first actor */
    const int *first_at;
    const int *at; /* (num): simulated ranks, sorted by pipeline rank */
    /* (num, num_pipeline_ranks): [a][p]: actor at rank p of the pipeline of actor a */
    const int *along;
    /* (num): factor on each simulated rank's compute time; 1: normal speed */
    const double *slow_factor;
    ms_meetings meetings[MS_NUM_TRAFFIC_GROUPS];
} ms_actors;

/* All communication groups of kind `which` (ms_traffic_group) with their ranks; those of
 * pipeline groups are in pipeline order. */
ms_fold_axis ms_group_axis(ms_arena *arena, const ms_plan_groups *groups, int which);

/* Folds the ranks of a plan into actors (simulated ranks). `slow_factor` and `colour`
 * (NULL: all equal) have an entry per rank (plan->gpus). Ranks share an actor if pipeline
 * rank, slow factor and colour are equal, for them and for the members of their groups.
 * `unfolded`: every rank becomes an actor. The result lives in the arena. */
ms_actors ms_actors_make(ms_arena *arena, const ms_plan *plan, const double *slow_factor,
                         const int *colour, bool unfolded);

/* The simulated ranks of a meeting (a communicating set); *num becomes their number. */
const int *ms_meeting_actors(const ms_meetings *meetings, int meeting, int *num);

#endif
