/* Virtual pipeline stages: sums of the costs of their blocks, and durations of a
 * schedule's actions with the transfers of parameters and gradients. */
#ifndef MS_SIM_STEP_STAGE_H
#define MS_SIM_STEP_STAGE_H

#include "sim/step/block_cost.h"
#include "sim/step/replay.h"
#include "sim/step/unit_overlap.h"

/* Bytes alive on a rank: activations, logits, and the gradient of the head's matrix. */
typedef struct ms_live_bytes {
    double activation_bytes, logits_bytes, head_grad_bytes;
    double host_bytes; /* activations in host memory */
} ms_live_bytes;

/* A virtual stage: consecutive blocks of the model. */
typedef struct ms_stage {
    ms_block_cost sum; /* each cost summed over the blocks, except memory.transient */
    bool pipelined;    /* the pipeline has other stages */
    bool is_first;     /* first stage of the model */
    /* (whole backward, input half, weight half): the most by which memory exceeds the
     * micro-batch's activations saved at the start (sum.memory.saved; weight half:
     * .delayed). Each block frees its part of these when done, in the input half only
     * what the weight half does not need. */
    ms_live_bytes transient[MS_NUM_BILL_HALVES];
    /* durations of actions if compute overlaps with block by block transfers */
    ms_unit_times by_unit;
    /* seconds of one more gather and reduction of the matrix that a head shares with the
     * embedding on its rank, if blocks move one by one (ms_moved_dense_params) */
    double tied_gather_s, tied_regather_saved_s, tied_reduce_s;
    double unit_dense_params, unit_expert_params; /* parameters of the largest block */
    /* (dense, expert) bytes of the largest block, frozen parameters included */
    double unit_gathered_bytes[2];
    ms_update_cost update; /* summed over the blocks */
    long num_layers;
} ms_stage;

/* The blocks of a stage, and how its layers are recomputed. */
typedef struct ms_stage_layout {
    long first_layer, num_layers;
    bool has_embedding, has_head;
    bool head_beside_embedding; /* both on one rank: a tied matrix exists once */
    ms_layer_mode mode;
    long recompute_layers; /* MS_RECOMPUTE_FULL: first layers recomputed; 0: all */
    bool compute_alone;    /* for bounds: leave out ZeRO-3 and transient memory */
} ms_stage_layout;

/* The blocks of one stage of the split, with the plan's recomputation. */
ms_stage_layout ms_split_layout(const ms_split *split, int stage, ms_layer_mode mode,
                                long recompute_layers);

/* When the gradient reductions that run once per step take place. With ZeRO-2 and ZeRO-3
 * only reductions over dp_replicate run once per step. */
typedef enum ms_reduction_time {
    MS_REDUCE_BY_UNIT,     /* block by block, during the stage's last backward */
    MS_REDUCE_AFTER_STAGE, /* all at once, after the stage's last backward */
    MS_REDUCE_AFTER_RANK   /* all stages of a rank, after the rank's last backward */
} ms_reduction_time;

/* The time of a stage's reductions (ms_reduction_time). All stages of a pipeline but the
 * first reduce their gradients as one bucket (Megatron-LM distributed_data_parallel.py:
 * no bucketing except on the first stage; PyTorch pipelining/stage.py,
 * perform_reduce_grad). With ZeRO-2, backwards of a pipeline wait for their own
 * reductions, which no other transfer may delay. */
ms_reduction_time ms_stage_reduces_when(const ms_stack *stack, const ms_stage *stage,
                                        ms_sharding sharding);

void ms_stage_make(const ms_workload *workload, const ms_block_costs *blocks,
                   const ms_stage_layout *layout, ms_stage *out);

/* Number of layers that a forward of stage `f` overlaps with a backward of stage `b`. They
 * run in pairs: the first layer of `f` with the last layer of `b`, and so on. */
long ms_num_layer_pairs(const ms_stage_layout *f, const ms_stage_layout *b);
/* Seconds for which pair `i` of them waits for the host. */
double ms_layer_pair_host_s(const ms_workload *workload, const ms_block_costs *blocks,
                            const ms_stage_layout *f, const ms_stage_layout *b, long i);

/* Seconds saved if a forward of stage `f` overlaps with a backward of stage `b`. */
double ms_pair_saved_s(const ms_workload *workload, const ms_block_costs *blocks,
                       const ms_stage_layout *f, const ms_stage_layout *b);

/* Durations of the stage's actions, as if it were the first model chunk of its rank.
 * Gathers that run once per step start with the step on every rank; the first forward
 * runs block by block as parameters arrive. */
ms_stage_times ms_stage_durations(const ms_workload *workload, const ms_stage *stage,
                                  ms_sharding sharding, double send_s);

#endif
