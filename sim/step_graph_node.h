/* Inside the node-level builder: a forward or backward on its way through the parts of a
 * stage, and what moves parameters and gradients beside it. */
#ifndef MS_SIM_STEP_GRAPH_NODE_H
#define MS_SIM_STEP_GRAPH_NODE_H

#include "sim/part_ops.h"
#include "sim/step_graph_priv.h"

/* What a kernel waited for. */
typedef struct ms_kernel_start {
    int before, ready, arrived;
} ms_kernel_start;

typedef struct ms_node_builder {
    ms_step_builder s;
    bool shares;           /* the engine shares links and SMs */
    bool overlaps;         /* the stack moves parameters and gradients beside compute */
    ms_stage_parts *parts; /* by stage of the model */
    /* by placed stage: (parts, actors of its rank), of parameters that are gathered once;
     * NULL: they are not */
    int **gathered;
    int *part_start; /* (actors): after it the part at work began */
    int *begun;      /* (actors): first kernel of the action at work; 0: none yet */
    int most_ops;
} ms_node_builder;

/* On all actors of a pipeline rank at once. */
typedef struct ms_walk {
    int rank;
    int stage; /* placed */
    const ms_stage *sums;
    const ms_stage_parts *parts;
    int microbatch;
    int pass;             /* ms_bill_pass */
    bool inputs, weights; /* halves of a backward */
    bool first_forward, last_backward;
    int part, op; /* at work; backwards parts come from the last to the first */
    int *ready;   /* (actors): what the next task waits for */
    int *arrived; /* (actors): and what else; 0: nothing */
    int *params;  /* (actors): the gather of the next part; 0: none */
    ms_kernel_start *starts; /* (ops of a part, actors of the rank) */
    double when_s; /* about when the next op can start; to take turns in a pair */
} ms_walk;

const ms_part_ops *ms_walk_part(const ms_walk *w);

/* The next task of each actor waits for others[actor] too; 0: for nothing. */
void ms_walk_wait(ms_node_builder *b, ms_walk *w, const int *others);

/* Gathers of the whole step, from its start. */
void ms_state_gather_once(ms_node_builder *b);
/* Before and after the ops of the part at work, and after the last part. */
void ms_state_begin_part(ms_node_builder *b, ms_walk *w);
void ms_state_end_part(ms_node_builder *b, ms_walk *w);
void ms_state_end_walk(ms_node_builder *b, ms_walk *w);

/* A task on the compute stream that stands for what others cost the kernels beside them.
 * Only without sharing. */
void ms_add_interference(ms_node_builder *b, ms_walk *w, double seconds);

#endif
