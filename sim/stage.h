/* Parts summed into virtual stages, and the durations of a schedule's actions: completed
 * by the traffic of parameters and gradients that the sharding asks for. */
#ifndef MS_SIM_STAGE_H
#define MS_SIM_STAGE_H

#include "sim/parts.h"
#include "sim/replay.h"
#include "sim/unit_walk.h"

/* Bytes of activations and logits on a rank, and of the gradient of the head's matrix
 * while it is made. */
typedef struct ms_live_bytes {
    double activation_bytes, logits_bytes, head_grad_bytes;
} ms_live_bytes;

/* A virtual stage: its parts summed. */
typedef struct ms_stage {
    ms_part sum;    /* but for memory.transient */
    bool pipelined; /* other stages are before or after it */
    bool is_first;  /* of the model */
    /* of a backward or half, from the last part to the first, when most is alive: beyond
     * what the stage keeps of the micro-batch when it begins (sum.memory.saved; delayed
     * in the half for weights). The parts behind the one at work have given up theirs:
     * all of it, or what does not wait for the second half, or what waited. */
    ms_live_bytes transient[MS_NUM_BILL_HALVES];
    ms_unit_times by_unit; /* ZeRO 2 and 3 where the stack overlaps */
    /* what a head beside its embedding gathers and reduces of their matrix once more,
     * unit by unit (ms_moved_dense_params) */
    double tied_gather_s, tied_reduce_s;
    /* the largest unit that is gathered at once */
    double unit_dense_params, unit_expert_params;
    long num_layers;
} ms_stage;

/* Which layers a stage holds and how they are recomputed. */
typedef struct ms_stage_layout {
    long first_layer, num_layers;
    bool has_embedding, has_head;
    /* on one rank, if not in one stage: a tied matrix is there once */
    bool head_beside_embedding;
    ms_recompute recompute;
    long recompute_layers; /* MS_RECOMPUTE_FULL: the first so many of the stage; 0: all */
    /* for bounds: leaves out what ZeRO-3 moves part by part, and transients */
    bool compute_alone;
} ms_stage_layout;

/* The layout of a stage of the split. */
ms_stage_layout ms_split_layout(const ms_split *split, int stage, ms_recompute recompute,
                                long recompute_layers);

/* When gradients move that move once a step (for ZeRO 2 and 3: over dp_replicate). */
typedef enum ms_reduction_time {
    MS_REDUCE_BY_UNIT,     /* part by part beside the stage's last backward */
    MS_REDUCE_AFTER_STAGE, /* in one after it */
    MS_REDUCE_AFTER_RANK   /* of all stages, after the last backward of the rank */
} ms_reduction_time;

/* Gradients of all stages but the first of a pipeline are one bucket (Megatron-LM
 * distributed_data_parallel.py: no bucketing but on the first stage; PyTorch
 * pipelining/stage.py, perform_reduce_grad). With ZeRO 2 backwards of a pipeline wait for
 * their own reductions, and nothing else may be in their way. */
ms_reduction_time ms_stage_reduces_when(const ms_stack *stack, const ms_stage *stage,
                                        ms_sharding sharding);

void ms_stage_make(const ms_workload *workload, const ms_parts *parts,
                   const ms_stage_layout *layout, ms_stage *out);

/* What a forward of stage f beside a backward of stage b takes less than one after the
 * other: their layers run in pairs, the first of the forward with the last, which is the
 * first of the backward. */
double ms_pair_saved_s(const ms_workload *workload, const ms_parts *parts,
                       const ms_stage_layout *f, const ms_stage_layout *b);

/* Durations of the stage's actions under a sharding, as if it were the first chunk of its
 * rank: its release is that of its own parameters. Gathers for a whole step start with
 * it, on every rank at once; a stage's first forward goes on part by part as they arrive,
 * so it ends no earlier than its last part's forward after the gather. */
ms_stage_times ms_stage_durations(const ms_workload *workload, const ms_stage *stage,
                                  ms_sharding sharding, double send_s);

#endif
