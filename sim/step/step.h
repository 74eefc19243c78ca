/* Evaluation of one plan: lower bounds of its step time in closed form, its memory, and
 * its exact step time by replay. sim/step predicts from priced programs (ms_bill) and
 * links; searches are in sim/search, event simulation in sim/simulate. */
#ifndef MS_SIM_STEP_STEP_H
#define MS_SIM_STEP_STEP_H

#include "sim/step/kind_prices.h"
#include "sim/step/rank_memory.h"
#include "sim/step/schedule_cache.h"

/* A pipeline ready to be evaluated with several shardings. */
typedef struct ms_pipeline {
    const ms_workload *workload;
    const ms_links *links;     /* groups of all ranks; all groups if devices are alike */
    const ms_prices *of_kinds; /* [ms_kind_set]; NULL: all devices are alike */
    ms_schedule_shape shape;
    const ms_split *split;
    const ms_stage *stages;    /* (split->num_classes): one per stage class */
    const ms_rank_load *loads; /* (split->num_runs): one per rank class */
    ms_shard_sizes shards;
    /* seconds of a message between stages; 0 if the sender waits (send_hold_s) */
    double send_s;
    double send_hold_s;  /* seconds that a sender waits per message; 0: none */
    double world_sync_s; /* seconds in which all ranks synchronize before the optimizer */
    /* the schedule, or a shorter one that begins and ends alike; NULL: no tight bound */
    const ms_schedule *lists;
    const ms_block_costs *blocks; /* costs of blocks, for overlapped pairs */
    ms_layer_mode mode;           /* recomputation of layers */
    long recompute_layers;
    /* ms_step_exact_s: steps that take at least this need no smaller error; 0: each does */
    double enough_s;
} ms_pipeline;

/* The prices of a stage, on the devices that have it; bills are NULL if all are alike. */
ms_prices ms_pipeline_prices(const ms_pipeline *pipeline, int stage);

/* The stages of the pipeline's split, one per class, with its recomputation. They live in
 * the arena. */
ms_stage *ms_pipeline_stages(ms_arena *arena, const ms_pipeline *pipeline);
/* The load of ranks with `live` micro-batches and `sides`, on the pipeline's stages. */
ms_rank_load ms_pipeline_load(const ms_pipeline *pipeline, const ms_rank_sides *sides,
                              const ms_rank_live *live);

/* Sets send_s and send_hold_s from the seconds of a message between stages. */
void ms_pipeline_set_sends(ms_pipeline *pipeline, double message_s);

/* Bytes of the gradient norm in its all-reduce: one fp32 number. */
#define MS_NORM_BYTES 4.0

/* Seconds that all ranks wait between the last backward and the optimizer: for an
 * all-reduce of the gradient norm; if tied embeddings are on different ranks, also for
 * the exchange of their gradient between first and last stage (Megatron-LM,
 * finalize_model_grads.py), at the cost of one send between neighbouring stages. */
double ms_step_sync_s(const ms_workload *workload, const ms_links *links,
                      const ms_block_costs *blocks, const ms_split *split);

/* Seconds in which a rank updates the parameters that it owns (ms_update_s). Muon adds
 * the gather of sharded matrices in 16 bits and the products of its own ones, at least of
 * one matrix: Liu et al. 2025 (arXiv 2502.16982), section 2.3, distributed Muon. */
double ms_rank_update_s(const ms_pipeline *pipeline, int rank, const ms_rank_load *load,
                        ms_sharding sharding);

/* Seconds of the optimizer, world_sync_s included, on the slowest rank,
 * which *slowest_rank becomes. */
double ms_optimizer_s(const ms_pipeline *pipeline, ms_sharding sharding,
                      int *slowest_rank);

/* Whether pairs of a forward and a backward run kernel by kernel, one computing while the
 * other exchanges tokens: the schedule has pairs, there are exchanges, and the sharding
 * moves parameters or gradients only once per step. Otherwise the backward follows the
 * forward (deepseek-ai/DualPipe without an overlapped_forward_backward of the model;
 * DeepSeek-V3 shards with ZeRO-1, Megatron-LM overlaps only exchanges of experts; from
 * memory of the code). */
bool ms_pipeline_overlaps_pairs(const ms_pipeline *pipeline, ms_sharding sharding);
/* Seconds saved if a forward of one stage overlaps with a backward of another. */
double ms_pipeline_pair_saved_s(const ms_pipeline *pipeline, int forward_stage,
                                int backward_stage);

/* Fills the durations of every placed stage; arrays in them live in the arena. */
void ms_step_durations(const ms_pipeline *pipeline, ms_sharding sharding, ms_arena *arena,
                       ms_stage_times *times);
/* Durations of a stage class, as if it were the first chunk of its rank. */
ms_stage_times ms_step_class_durations(const ms_pipeline *pipeline, ms_sharding sharding,
                                       int stage_class);
/* Bytes and seconds of the gradient exchange between a stage's two copies (DualPipe
 * places stages twice): each sends its shard, at the cost of a send between stages. */
double ms_replica_bytes(const ms_pipeline *pipeline, const ms_stage *stage,
                        ms_sharding sharding);
double ms_replica_s(const ms_pipeline *pipeline, const ms_stage *stage,
                    ms_sharding sharding);

/* Lower bound, in seconds, of ms_step_exact_s (docs/formulas 6.3), lowered by 1e-12 of
 * itself for rounding. */
double ms_step_bound_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       ms_arena *scratch);

/* Lower bound, in seconds, of every plan's step on so many devices: the model's FLOP in
 * products, with causal attention, at their peak. */
double ms_step_floor_s(const ms_workload *workload, long gpus);

/* Tighter bound, slower to compute: considers how pipeline->lists begins and ends. */
double ms_step_tight_bound_s(const ms_pipeline *pipeline, ms_sharding sharding,
                             ms_arena *scratch);

/* Time of a step by replay of the whole schedule. If the optimizer synchronizes all
 * ranks, the step ends when the slowest has updated its parameters. If ranks do not wait
 * for each other (post-validation, Qi et al. 2023, section 5.3), a step takes the longest
 * time of any rank from the start of its first action to the end of its optimizer. */
typedef struct ms_step_time {
    double step_s;
    double optimizer_s; /* part of step_s */
    int last_rank;      /* the pipeline rank whose optimizer takes optimizer_s */
} ms_step_time;
ms_step_time ms_step_time_of(const ms_pipeline *pipeline, ms_sharding sharding,
                             const ms_schedule *schedule, const ms_stage_times *times,
                             ms_arena *scratch);

/* Step time by replay of the whole schedule, in seconds; if it certainly is at least
 * pipeline->enough_s, perhaps of a coarser replay (ms_replay), but not less. */
double ms_step_exact_s(const ms_pipeline *pipeline, ms_sharding sharding,
                       const ms_schedule *schedule, ms_arena *scratch);

/* The largest memory peak of all ranks, in bytes; worst_rank: the first such rank. In a
 * mixed cluster the peak of the rank with the least room, as bytes on a device of the
 * workload that leave as much room (ms_memory_limit). */
double ms_step_peak_bytes(const ms_pipeline *pipeline, ms_sharding sharding,
                          int *worst_rank);

#endif
