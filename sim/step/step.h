/* Evaluation of one complete plan: lower bounds of its step time by closed form, its
 * memory, and its exact time by replay. This room holds the analytical prediction of a
 * plan, from priced programs (ms_bill) and links to step time, memory and traffic;
 * searches are in sim/search, event simulation in sim/simulate. */
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
    const ms_stage *stages;    /* (split->num_classes): stages by class */
    const ms_rank_load *loads; /* (split->num_runs): largest load of each rank class */
    ms_shard_sizes shards;
    double send_s; /* seconds of a message without the time its sender waits */
    double
        send_hold_s; /* seconds that a stage waits after an action: ms_message_hold_s */
    double world_sync_s; /* seconds of the optimizer's synchronization (ms_step_sync_s) */
    /* the schedule or a shorter one with equal edges, for tighter bounds; NULL: none */
    const ms_schedule *lists;
    const ms_block_costs *parts; /* for overlapped pairs: costs of blocks */
    ms_recompute recompute;
    long recompute_layers;
} ms_pipeline;

/* Sets send_s and send_hold_s; `message_s`: seconds of a message between stages. */
void ms_pipeline_set_sends(ms_pipeline *pipeline, double message_s);

/* The sum of squares of all gradients, in fp32. */
#define MS_NORM_BYTES 4.0

/* Seconds that all ranks wait between the last backward and the optimizer: the all-reduce of
 * the gradient norm, and with tied embeddings on different ranks the exchange of their
 * gradient between first and last stage (Megatron-LM, finalize_model_grads.py), which both
 * send at once, priced as one send between neighbouring stages. */
double ms_step_sync_s(const ms_workload *workload, const ms_links *links,
                      const ms_block_costs *parts, const ms_split *split);

/* Optimizer seconds of the slowest rank (of several the first), with world_sync_s. */
double ms_optimizer_s(const ms_pipeline *pipeline, ms_sharding sharding,
                      int *slowest_rank);

/* Whether the schedule overlaps forwards and backwards, and the plan exchanges tokens. */
bool ms_pipeline_has_pairs(const ms_pipeline *pipeline);
/* Seconds that a forward of one stage of the model overlapped with a backward of another one
 * saves. */
double ms_pipeline_pair_saved_s(const ms_pipeline *pipeline, int forward_stage,
                                int backward_stage);

/* Durations of all placed stages, an entry for each. Savings of pairs live in the arena. */
void ms_step_durations(const ms_pipeline *pipeline, ms_sharding sharding, ms_arena *arena,
                       ms_stage_times *times);
/* Durations of one class of stages, as the first chunk of a rank. */
ms_stage_times ms_step_class_durations(const ms_pipeline *pipeline, ms_sharding sharding,
                                       int stage_class);
/* Bytes and seconds in which the two copies of a stage that is placed twice (DualPipe)
 * exchange reduced gradients: each sends its shard, priced as a send between neighbouring
 * stages. */
double ms_replica_bytes(const ms_pipeline *pipeline, const ms_stage *stage,
                        ms_sharding sharding);
double ms_replica_s(const ms_pipeline *pipeline, const ms_stage *stage,
                    ms_sharding sharding);

/* Lower bound of ms_step_exact_s, in seconds: docs/formulas 6.3. Lowered by 1 part in 10^12
 * for rounding. */
double ms_step_bound_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       ms_arena *scratch);

/* Tighter lower bound, which uses the beginnings and ends of pipeline->lists; slower. */
double ms_step_tight_bound_s(const ms_pipeline *pipeline, ms_sharding sharding,
                             ms_arena *scratch);

/* Time of a step by replay of the whole schedule. With a global synchronization it ends when
 * the slowest rank has stepped after all reductions. With post-validation ranks do not
 * wait: a step takes the longest span of any rank, from its first action to the end of its
 * own optimizer (Qi et al. 2023, section 5.3). */
typedef struct ms_step_time {
    double step_s;
    double optimizer_s; /* seconds of the optimizer, part of the step */
    int last_rank;      /* rank that optimizer_s belongs to */
} ms_step_time;
ms_step_time ms_step_time_of(const ms_pipeline *pipeline, ms_sharding sharding,
                             const ms_schedule *schedule, const ms_stage_times *times,
                             ms_arena *scratch);

/* Step time by replay of the whole schedule, in seconds. */
double ms_step_exact_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       const ms_schedule *schedule, ms_arena *scratch);

/* The largest peak over all ranks, in bytes, and its rank. */
double ms_step_peak_bytes(const ms_pipeline *pipeline, ms_sharding sharding,
                          int *worst_rank);

#endif
