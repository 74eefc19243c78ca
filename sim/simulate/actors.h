/* Actors: one simulated rank for each class of ranks that behave alike, and the
 * communication groups in which actors take part. */
#ifndef MS_SIM_SIMULATE_ACTORS_H
#define MS_SIM_SIMULATE_ACTORS_H

#include "sim/simulate/fold.h"
#include "sim/step/traffic.h"

/* Groups of one kind (ms_traffic_group), as actors see them. All groups whose ranks
 * belong to the same actors are one meeting; a meeting of one actor stands for groups
 * whose ranks all behave alike. */
typedef struct ms_meetings {
    long size; /* ranks in one group */
    int num;
    const int *of_actor; /* (num_actors): the meeting in which an actor takes part */
    const int *first;    /* (num + 1): where the actors of a meeting start in `actors` */
    const int *actors;   /* the actors of all meetings, ascending within each */
} ms_meetings;

typedef struct ms_actors {
    ms_fold fold;
    int num; /* number of actors: one per class of `fold` */
    int num_pipeline_ranks;
    const int *pipeline_rank; /* (num): pipeline rank of each actor */
    /* (num_pipeline_ranks + 1): where a pipeline rank starts in `at` */
    const int *first_at;
    const int *at; /* (num): actors sorted by pipeline rank */
    /* (num, num_pipeline_ranks): the actors on the pipeline of each actor */
    const int *along;
    /* (num): compute takes this many times as long; 1: normal speed */
    const double *slow_factor;
    ms_meetings meetings[MS_NUM_TRAFFIC_GROUPS];
} ms_actors;

/* All groups of one kind (ms_traffic_group) with their ranks. Ranks of pipeline groups
 * are in pipeline order. */
ms_fold_axis ms_group_axis(ms_arena *arena, const ms_plan_groups *groups, int which);

/* Folds the ranks of a plan into actors. Ranks of one pipeline rank are alike unless
 * their own `slow_factor` (gpus entries) or `colour` (gpus entries; NULL: all equal),
 * or that of a rank in one of their groups, differs. `unfolded` makes every rank an
 * actor. The result lives in the arena. */
ms_actors ms_actors_make(ms_arena *arena, const ms_plan *plan, const double *slow_factor,
                         const int *colour, bool unfolded);

/* The actors of a meeting, of which there are *num. */
const int *ms_meeting_actors(const ms_meetings *meetings, int meeting, int *num);

#endif
