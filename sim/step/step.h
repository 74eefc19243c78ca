/* One complete plan evaluated: a lower bound of its step time by closed form, its memory,
 * and its exact time by replay. Everything that plans share (bills, schedules, live
 * vectors) is cached. */
#ifndef MS_SIM_STEP_STEP_H
#define MS_SIM_STEP_STEP_H

#include "sim/step/rank_memory.h"
#include "sim/step/schedule_cache.h"

/* A pipeline ready to be evaluated under several shardings. */
typedef struct ms_pipeline {
    const ms_workload *workload;
    const ms_links *links;
    ms_schedule_shape shape;
    const ms_split *split;
    const ms_stage *stages; /* (split->num_classes) */
    /* (split->num_runs): of the first rank of each run, which keeps most micro-batches */
    const ms_rank_load *loads;
    ms_shard_sizes shards;
    double send_s;       /* that a message takes beside what its sender waits for */
    double send_hold_s;  /* that a stage waits after an action: ms_message_hold_s */
    double world_sync_s; /* before the optimizer: ms_step_sync_s */
    /* of the shape, or shorter ones with the same edges, for tighter bounds; NULL:
     * none */
    const ms_schedule *lists;
    /* for schedules with pairs: */
    const ms_block_costs *parts;
    ms_recompute recompute;
    long recompute_layers;
} ms_pipeline;

/* Sets both; `message_s` is that of a message between stages. */
void ms_pipeline_set_sends(ms_pipeline *pipeline, double message_s);

/* The sum of squares of all gradients, in fp32. */
#define MS_NORM_BYTES 4.0

/* What all ranks wait for between the last backward and the optimizer: the all-reduce of
 * the gradient norm, and with tied embeddings on different ranks the gradient of their
 * matrix, exchanged between the first and the last stage (Megatron-LM,
 * finalize_model_grads.py): both send it at once, priced as one send between neighbouring
 * stages. Where the pipeline ends on the rank on which it begins, the matrix is there
 * once. */
double ms_step_sync_s(const ms_workload *workload, const ms_links *links,
                      const ms_block_costs *parts, const ms_split *split);

/* Optimizer of the slowest rank (of several the first), with the gradient norm's
 * synchronisation. */
double ms_optimizer_s(const ms_pipeline *pipeline, ms_sharding sharding,
                      int *slowest_rank);

/* Durations of all placed stages (an entry for each). What pairs save lies in the
 * arena. */
void ms_step_durations(const ms_pipeline *pipeline, ms_sharding sharding, ms_arena *arena,
                       ms_stage_times *times);
/* Of one class of stages, as the first chunk of a rank. */
ms_stage_times ms_step_class_durations(const ms_pipeline *pipeline, ms_sharding sharding,
                                       int stage_class);
/* With a stage placed twice (DualPipe), the exchange of its reduced gradients with the
 * other copy: each sends its shard, priced as a send between neighbouring stages. */
double ms_replica_bytes(const ms_pipeline *pipeline, const ms_stage *stage,
                        ms_sharding sharding);
double ms_replica_s(const ms_pipeline *pipeline, const ms_stage *stage,
                    ms_sharding sharding);

/* Never above ms_step_exact_s: docs/formulas 6.3. Lowered by 1 part in 10^12 for
 * rounding. */
double ms_step_bound_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       ms_arena *scratch);

/* The same with what the lists say about how they begin and end; takes longer to
 * compute. */
double ms_step_tight_bound_s(const ms_pipeline *pipeline, ms_sharding sharding,
                             ms_arena *scratch);

/* A step by replay of the whole schedule. With a global synchronisation it ends when the
 * slowest rank has stepped after all have been reduced. With post-validation ranks do not
 * wait: in a row of steps each takes the longest span of any rank, from its first action
 * to the end of its own optimizer (Qi et al. 2023, section 5.3). */
typedef struct ms_step_time {
    double step_s;
    double optimizer_s; /* of it */
    int last_rank;      /* that the rest of the step is counted for */
} ms_step_time;
ms_step_time ms_step_time_of(const ms_pipeline *pipeline, ms_sharding sharding,
                             const ms_schedule *schedule, const ms_stage_times *times,
                             ms_arena *scratch);

/* By replay of the whole schedule. */
double ms_step_exact_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       const ms_schedule *schedule, ms_arena *scratch);

/* The largest peak over ranks, and where it is. */
double ms_step_peak_bytes(const ms_pipeline *pipeline, ms_sharding sharding,
                          int *worst_rank);

#endif
