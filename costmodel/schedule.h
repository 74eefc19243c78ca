/* Pipeline schedules as data: one list of actions per rank. Replay, event engine and runner read the
 * same lists. Stage = virtual stage, 0 .. pp*v-1; stage s of a looped schedule lives on rank s mod pp. */
#ifndef MS_COSTMODEL_SCHEDULE_H
#define MS_COSTMODEL_SCHEDULE_H

#include "costmodel/plan.h"

typedef enum ms_action_kind {
    MS_FORWARD,
    MS_BACKWARD,
    MS_NUM_ACTIONS
} ms_action_kind;

typedef struct ms_action {
    unsigned char kind; /* ms_action_kind */
    short stage;
    int microbatch;
} ms_action;

typedef struct ms_schedule_shape {
    ms_schedule_kind kind;
    int num_ranks;        /* p */
    int num_microbatches; /* m */
    int virtual_stages;   /* v; 1 unless interleaved */
    int group; /* g, interleaved only; 0: PyTorch's default: rounds = max(1, m div p), g = m div rounds */
} ms_schedule_shape;

/* One action as replay needs it. Steps are counted from 1; step 0 is no action and ends at time 0. */
typedef struct ms_step {
    int before; /* step of the action before it on its rank; 0: the first */
    int cross;  /* step on another rank that sends to it; 0: nothing is received */
    int cost;   /* MS_NUM_STEP_COSTS * stage + ms_step_cost */
} ms_step;

typedef enum ms_step_cost {
    MS_COST_FORWARD,
    MS_COST_FIRST_FORWARD,
    MS_COST_BACKWARD,
    MS_COST_LAST_BACKWARD,
    MS_NUM_STEP_COSTS
} ms_step_cost;

typedef struct ms_schedule {
    ms_schedule_shape shape;
    int num_stages;           /* p * v */
    int actions_per_rank;     /* 2 m v */
    const ms_action *actions; /* (num_ranks, actions_per_rank) */
    /* Live chunks while a rank walks its list: the Pareto-maximal vectors of forwards whose backward has not
     * run, per chunk of the rank. Peak memory is the maximum over these of sum live[c] * bytes[c]: exact, since
     * a rank's order does not depend on times. Rank r's vectors are live[first_live[r]] .. live[first_live[r+1]-1]. */
    const int *first_live; /* (num_ranks + 1) */
    const int *live;       /* (num_live, virtual_stages) */
    /* All actions in one order in which each comes after the two that it waits for. */
    int num_steps;                 /* num_ranks * actions_per_rank */
    const ms_step *steps;          /* (1 + num_steps); steps[0] is no action */
    const int *step_action;        /* (1 + num_steps): index into actions */
    const int *last_step;          /* (num_ranks): step of each rank's last action */
    const int *last_backward_step; /* (num_stages) */
} ms_schedule;

/* False when the schedule does not allow the shape (p < 1, m < 1, g that deadlocks, ...); `why` (may be NULL) gets a
 * sentence. Integers only. An interleaved order with groups of g micro-batches, p <= g <= m or g = m, runs unless a
 * ragged last group of m mod g micro-batches is too small: m mod g > 0 (v >= 3) or > 1 (v = 2), and g + m mod g < 2p - 2,
 * deadlocks (found by exhaustion for p <= 16, v <= 5, m <= 44; Megatron-LM schedules.py asks for the narrower m mod g = 0 or >= p). */
bool ms_schedule_allows(const ms_schedule_shape *shape, const char **why);
/* The effective group size of an interleaved shape. */
int ms_schedule_group(const ms_schedule_shape *shape);
/* Generates the lists; everything lives in the arena. The shape must be allowed. */
ms_schedule *ms_schedule_make(ms_arena *arena, const ms_schedule_shape *shape);
/* Every stage runs each micro-batch forward once and backward once, after it, on its own rank, and the lists do not
 * deadlock. For tests. */
bool ms_schedule_check(const ms_schedule *schedule, const char **why);

#endif
