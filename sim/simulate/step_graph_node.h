/* Internals of the builder of a step graph with a task per node: forwards and backwards
 * on their way through a stage's blocks, beside transfers of parameters and gradients. */
#ifndef MS_SIM_SIMULATE_STEP_GRAPH_NODE_H
#define MS_SIM_SIMULATE_STEP_GRAPH_NODE_H

#include "sim/simulate/block_ops.h"
#include "sim/simulate/step_graph_priv.h"

/* Tasks that a kernel waited for: the one `before` it on its stream, and the ms_walk
 * values `ready` and `arrived` at its start; 0: none. */
typedef struct ms_kernel_start {
    int before, ready, arrived;
} ms_kernel_start;

typedef struct ms_node_builder {
    ms_step_builder s;
    bool shares;             /* the engine shares links and SMs between tasks */
    bool overlaps;           /* the stack overlaps gathers and reductions with compute */
    bool overlaps_pairs;     /* ms_pipeline_overlaps_pairs */
    ms_stage_blocks *blocks; /* (stages of the model): blocks by stage */
    /* [placed stage], (blocks, actors of its rank): the tasks that gather each block's
     * parameters once per step; NULL: none */
    int **gathered;
    int *block_start; /* (num_actors): the task after which the current block began */
    int *launched;    /* (num_actors): launch of the current block by the host; 0: none */
    int *first_kernel; /* (num_actors): first kernel of the current action; 0: none yet */
    int most_ops;
    /* (num_actors, 6): work memory: tasks for which those of a block wait */
    int *state;
    int *streams; /* (num_actors, MS_NUM_STREAMS): streams, sorted by pipeline rank */
} ms_node_builder;

/* A forward or backward of one micro-batch through a stage, on all simulated ranks of a
 * pipeline rank at once. */
typedef struct ms_walk {
    int rank;
    int stage; /* stage in the schedule's numbering */
    const ms_stage *sums;
    const ms_stage_blocks *blocks;
    int microbatch;
    int pass; /* MS_BILL_FORWARD or MS_BILL_BACKWARD */
    /* gradients that a backward computes: of inputs, of weights */
    bool inputs, weights;
    bool first_forward, last_backward;
    /* current block and its operation; a backward counts blocks from the last one */
    int block, op;
    int *ready; /* (num_actors): the task that a simulated rank's next task waits for */
    /* (num_actors): a second such task, often a message; 0: none */
    int *arrived;
    int *params; /* (num_actors): gather task of the next block; 0: none */
    /* (operations of a block, actors of the rank): what kernels waited for */
    ms_kernel_start *starts;
    /* overlapped pair: its number of pairs of layers, and for how long (seconds) each of
     * this half's layers waits for the host, in the order in which they run */
    long num_pairs;
    double *pair_host_s;
    /* estimated start of the next operation, s; in an overlapped pair the forward or
     * backward with the smaller value continues */
    double next_op_s;
} ms_walk;

/* The block at which a walk is; the one that it runs `steps` blocks later, NULL: none. */
const ms_block_ops *ms_walk_block(const ms_walk *w);
const ms_block_ops *ms_walk_neighbour(const ms_walk *w, int steps);

/* Equal blocks whose parameters and gradients move together, from position `first` on in
 * the order of a walk. */
typedef struct ms_walk_unit {
    const ms_block_ops *block; /* one of them; NULL: none */
    int first, num;
} ms_walk_unit;
/* The unit of the walk's block at a position, which may be outside the stage. */
ms_walk_unit ms_walk_unit_at(const ms_walk *w, int position);

/* Makes the next task of each simulated rank wait for others[actor] too; 0: no effect. */
void ms_walk_wait(ms_node_builder *b, ms_walk *w, const int *others);

/* Adds the parameter gathers that run once per step, from its start. */
void ms_state_gather_once(ms_node_builder *b);
/* Add the gathers of parameters and reductions of gradients that belong before the
 * current block's operations, after them, and after the stage's last block. */
void ms_state_begin_block(ms_node_builder *b, ms_walk *w);
void ms_state_end_block(ms_node_builder *b, ms_walk *w);
void ms_state_end_walk(ms_node_builder *b, ms_walk *w);

/* Adds the tasks of a walk's current block, if they are those of an earlier block (of
 * another layer or micro-batch) with other numbers, and moves on to the next block. false:
 * the caller adds them, and then calls ms_repeat_end_block. ms_repeat_open comes first. */
void ms_repeat_open(ms_node_builder *b);
bool ms_repeat_block(ms_node_builder *b, ms_walk *w);
void ms_repeat_end_block(ms_node_builder *b, const ms_walk *w);

/* Adds a task on the compute stream for the seconds by which concurrent transfers slow
 * down kernels. No effect if the engine shares links and SMs. */
void ms_add_interference(ms_node_builder *b, ms_walk *w, double seconds);
/* Adds a task on the compute stream for a wait for the host, which ends `seconds` after it
 * began, or with the tasks others[actor] (0, or NULL: none). */
void ms_add_host(ms_node_builder *b, ms_walk *w, double seconds, const int *others);

#endif
