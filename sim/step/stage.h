/* Virtual stages: sums of the costs of their blocks, and durations of a schedule's actions,
 * including transfers of parameters and gradients. */
#ifndef MS_SIM_STEP_STAGE_H
#define MS_SIM_STEP_STAGE_H

#include "sim/step/block_cost.h"
#include "sim/step/replay.h"
#include "sim/step/unit_walk.h"

/* Bytes of activations and logits on a rank, and of the gradient of the head's matrix
 * while it is computed. */
typedef struct ms_live_bytes {
    double activation_bytes, logits_bytes, head_grad_bytes;
} ms_live_bytes;

/* A virtual stage. */
typedef struct ms_stage {
    ms_block_cost sum; /* sum over the blocks, except memory.transient */
    bool pipelined;    /* the pipeline has other stages */
    bool is_first;     /* first stage of the model */
    /* Largest bytes alive during a backward, or half of one, beyond the micro-batch's
     * saved activations at its start (sum.memory.saved; in the weight half .delayed).
     * Finished blocks have freed all saved activations (whole), those not delayed (input
     * half), or the delayed (weight half). */
    ms_live_bytes transient[MS_NUM_BILL_HALVES];
    /* ZeRO-2 and ZeRO-3 where the stack overlaps transfers with compute */
    ms_unit_times by_unit;
    /* seconds in which a head on the rank of its tied embedding gathers and reduces
     * the shared matrix once more, unit by unit (ms_moved_dense_params) */
    double tied_gather_s, tied_reduce_s;
    double unit_dense_params, unit_expert_params; /* parameters of the largest unit */
    long num_layers;
} ms_stage;

/* Blocks of a stage and how its layers are recomputed. */
typedef struct ms_stage_layout {
    long first_layer, num_layers;
    bool has_embedding, has_head;
    bool head_beside_embedding; /* on one rank: a tied matrix exists once */
    ms_recompute recompute;
    long recompute_layers; /* MS_RECOMPUTE_FULL: first layers recomputed; 0: all */
    bool compute_alone;    /* for bounds: no ZeRO-3 transfers, transient memory */
} ms_stage_layout;

/* The blocks of a stage of the split and their recomputation. */
ms_stage_layout ms_split_layout(const ms_split *split, int stage, ms_recompute recompute,
                                long recompute_layers);

/* Time of the reductions that run once per step (for ZeRO-2 and ZeRO-3: those over
 * dp_replicate). */
typedef enum ms_reduction_time {
    MS_REDUCE_BY_UNIT,     /* block by block, during the stage's last backward */
    MS_REDUCE_AFTER_STAGE, /* reduced all at once, after the stage's last backward */
    MS_REDUCE_AFTER_RANK   /* for all stages, after the rank's last backward */
} ms_reduction_time;

/* When a stage reduces its gradients. Gradients of all stages except the first of a
 * pipeline are one bucket (Megatron-LM distributed_data_parallel.py: no bucketing
 * except on the first stage; PyTorch pipelining/stage.py, perform_reduce_grad). With
 * ZeRO-2, backwards of a pipeline wait for their own reductions, which no other
 * transfer may delay. */
ms_reduction_time ms_stage_reduces_when(const ms_stack *stack, const ms_stage *stage,
                                        ms_sharding sharding);

void ms_stage_make(const ms_workload *workload, const ms_block_costs *parts,
                   const ms_stage_layout *layout, ms_stage *out);

/* Seconds that overlap of a forward of stage f with a backward of stage b saves: layers run
 * in pairs, the first layer of f with the last of b. */
double ms_pair_saved_s(const ms_workload *workload, const ms_block_costs *parts,
                       const ms_stage_layout *f, const ms_stage_layout *b);

/* Durations of the stage's actions with a sharding, as if it were the first model chunk of
 * its rank. Gathers for a whole step start with it, on every rank at once; the first
 * forward of a stage proceeds block by block as parameters arrive, so it ends no earlier
 * than its last block's gather plus forward. */
ms_stage_times ms_stage_durations(const ms_workload *workload, const ms_stage *stage,
                                  ms_sharding sharding, double send_s);

#endif
