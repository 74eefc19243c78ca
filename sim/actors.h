/* Who is simulated: one rank of each class of ranks that behave alike, and the groups in
 * which they meet. */
#ifndef MS_SIM_ACTORS_H
#define MS_SIM_ACTORS_H

#include "sim/fold.h"
#include "sim/traffic.h"

/* Groups of one kind. Groups with the same actors are one meeting; with one actor, it
 * stands for all members. */
typedef struct ms_meetings {
    long size; /* ranks of a group */
    int num;
    const int *of_actor; /* (num_actors) */
    const int *first;    /* (num + 1): into actors */
    const int *actors;   /* of each meeting, ascending */
} ms_meetings;

typedef struct ms_actors {
    ms_fold fold;
    int num; /* classes of the fold */
    int num_pipeline_ranks;
    const int *pipeline_rank; /* (num) */
    const int *first_at;      /* (num_pipeline_ranks + 1): into at */
    const int *at;            /* (num): actors by pipeline rank */
    const int *along; /* (num, num_pipeline_ranks): the actors of each actor's pipeline */
    const double *slow_factor; /* (num): of compute */
    ms_meetings meetings[MS_NUM_TRAFFIC_GROUPS];
} ms_actors;

/* All groups of one kind (ms_traffic_group) with their ranks; those of the pipeline are
 * ordered. */
ms_fold_axis ms_group_axis(ms_arena *arena, const ms_plan_groups *groups, int which);

/* Folds the ranks of a plan. Ranks of one pipeline rank are alike unless `slow_factor`
 * (gpus entries) or `colour` (gpus entries; NULL: all the same) tell them apart,
 * themselves or in one of their groups. Lives in the arena. */
ms_actors ms_actors_make(ms_arena *arena, const ms_plan *plan, const double *slow_factor,
                         const int *colour, bool unfolded);

/* The actors of a meeting. */
const int *ms_meeting_actors(const ms_meetings *meetings, int meeting, int *num);

#endif
