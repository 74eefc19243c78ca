/* One complete plan evaluated: a lower bound of its step time by closed form, its memory, and its exact time by replay.
 * Everything that plans share (bills, schedules, live vectors) is cached. */
#ifndef MS_SIM_STEP_H
#define MS_SIM_STEP_H

#include "sim/memory.h"

/* Schedules and live vectors by shape; one per thread. */
typedef struct ms_schedule_cache ms_schedule_cache;
ms_schedule_cache *ms_schedule_cache_open(void);
void ms_schedule_cache_close(ms_schedule_cache *cache);
const ms_schedule *ms_schedule_cached(ms_schedule_cache *cache,
                                      const ms_schedule_shape *shape);
/* Live vectors of every rank without generating a long schedule: beyond a few groups of micro-batches they do not change. */
const ms_schedule *ms_live_cached(ms_schedule_cache *cache,
                                  const ms_schedule_shape *shape);

/* A pipeline ready to be evaluated under several shardings. */
typedef struct ms_pipeline {
    const ms_workload *workload;
    const ms_links *links;
    ms_schedule_shape shape;
    const ms_split *split;
    const ms_stage *stages; /* (split->num_classes) */
    const ms_rank_load *
        loads; /* (split->num_runs): of the first rank of each run, which keeps most micro-batches */
    ms_shard_sizes shards;
    double send_s;
    double world_sync_s; /* before the optimizer: ms_step_sync_s */
} ms_pipeline;

/* The sum of squares of all gradients, in fp32. */
#define MS_NORM_BYTES 4.0

/* What all ranks wait for between the last backward and the optimizer: the all-reduce of the gradient norm, and with tied embeddings
 * in different stages the gradient of their matrix, exchanged between the first and the last stage (Megatron-LM, finalize_model_grads.py): both
 * send it at once, priced as one send between neighbouring stages. */
double ms_step_sync_s(const ms_workload *workload, const ms_links *links,
                      const ms_parts *parts);

/* Optimizer of the slowest rank (of several the first), with the gradient norm's synchronisation. */
double ms_optimizer_s(const ms_pipeline *pipeline, ms_sharding sharding,
                      int *slowest_rank);

/* Durations of all stages (split->num_stages entries). */
void ms_step_durations(const ms_pipeline *pipeline, ms_sharding sharding,
                       ms_stage_times *times);

/* Never above ms_step_exact_s. A rank's own actions, before them the shortest way of the first micro-batch to it, after them the way of
 * the last one back to rank 0 and the reductions that follow there, or its own:
 *   T >= max_r [ max(sum_{s<r} (F1_s + c), release_r) + sum_{chunks of r} (F1 + (m-1) F + (m-1) B + BL)
 *                + max(rest_r, sum_{s<r} (BL_s + c) + rest_0) ] + optimizer,
 * F1 the first forward, BL the last backward of a stage, c the send, rest what reductions need after the last backward. Holds for
 * schedules in which the last action of every rank is the last micro-batch's backward on its first chunk: GPipe, 1F1B,
 * interleaved. Lowered by 1 part in 10^12 for rounding. */
double ms_step_bound_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       ms_arena *scratch);

/* By replay of the whole schedule. */
double ms_step_exact_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       const ms_schedule *schedule, ms_arena *scratch);

/* The largest peak over ranks, and where it is. */
double ms_step_peak_bytes(const ms_pipeline *pipeline, ms_sharding sharding,
                          int *worst_rank);

#endif
