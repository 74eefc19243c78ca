/* Internals of the step graph with a task per node: a forward or backward on its way
 * through the blocks of a stage, and the concurrent transfers of parameters and
 * gradients. */
#ifndef MS_SIM_SIMULATE_STEP_GRAPH_NODE_H
#define MS_SIM_SIMULATE_STEP_GRAPH_NODE_H

#include "sim/simulate/block_ops.h"
#include "sim/simulate/step_graph_priv.h"

/* The tasks that a kernel waited for; 0: none. */
typedef struct ms_kernel_start {
    int before, ready, arrived;
} ms_kernel_start;

typedef struct ms_node_builder {
    ms_step_builder s;
    bool shares;            /* the engine shares links and SMs between tasks */
    bool overlaps;          /* the stack overlaps gathers and reductions with compute */
    ms_stage_blocks *parts; /* (stages of the model): blocks by stage */
    /* (placed stages): for each, (blocks, actors of its rank), the gathers of
     * parameters that run once per step; NULL: none */
    int **gathered;
    int *part_start;   /* (actors): the task after which the current block began */
    int *first_kernel; /* (actors): first kernel of the current action; 0: none yet */
    int most_ops;
} ms_node_builder;

/* A forward or backward of one micro-batch through a stage, on all actors of a
 * pipeline rank at once. */
typedef struct ms_walk {
    int rank;
    int stage; /* placed stage, an index of the schedule */
    const ms_stage *sums;
    const ms_stage_blocks *parts;
    int microbatch;
    int pass; /* the pass that is walked (ms_bill_pass) */
    /* which halves of a backward run: gradients of inputs, gradients of weights */
    bool inputs, weights;
    bool first_forward, last_backward;
    /* current block and operation; a backward counts blocks from the last to the first */
    int part, op;
    int *ready; /* (actors): the task that the actor's next task waits for */
    /* (actors): a second task that the actor's next task waits for; 0: none */
    int *arrived;
    int *params;             /* (actors): the gather of the next block; 0: none */
    ms_kernel_start *starts; /* (operations of a block, actors of the rank) */
    /* estimated start of the next operation, in seconds; decides which walk of a pair
     * is next */
    double next_op_s;
} ms_walk;

const ms_block_ops *ms_walk_block(const ms_walk *w);

/* Makes the next task of each actor wait for others[actor] too; 0: no effect. */
void ms_walk_wait(ms_node_builder *b, ms_walk *w, const int *others);

/* Adds gathers that run once, from the start of the step. */
void ms_state_gather_once(ms_node_builder *b);
/* Add gathers and reductions before and after the operations of the current block, and
 * after the last block. */
void ms_state_begin_block(ms_node_builder *b, ms_walk *w);
void ms_state_end_block(ms_node_builder *b, ms_walk *w);
void ms_state_end_walk(ms_node_builder *b, ms_walk *w);

/* Adds a task on the compute stream for the seconds that concurrent transfers cost the
 * kernels. No effect with sharing. */
void ms_add_interference(ms_node_builder *b, ms_walk *w, double seconds);

#endif
