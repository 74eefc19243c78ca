/* Operations of a block (embedding, layer or head) on a rank: kernels and collectives in
 * program order, and transfers that sharding needs. Exposed and hidden seconds of
 * collectives are those of the analytic step time (sim/step/stage.h). */
#ifndef MS_SIM_SIMULATE_BLOCK_OPS_H
#define MS_SIM_SIMULATE_BLOCK_OPS_H

#include "sim/engine/graph.h"
#include "sim/simulate/link_uses.h"
#include "sim/step/planned.h"
#include "sim/step/sync_units.h"
#include "sim/step/traffic.h"

/* An operation of a block: a kernel or a collective. */
typedef struct ms_block_op {
    unsigned char kind; /* kind of the operation (ms_task_kind) */
    bool weight;        /* runs in the weight-gradient half (W) of a split backward */
    const char *name;
    double compute_s;    /* seconds of a kernel; 0 for collectives */
    const ms_node *node; /* layer program's node of the kernel; NULL: none */
    /* true: a collective, described by the fields below: `count` equal ones, one after
     * the other. count 0: only the exposed seconds of earlier collectives. */
    bool moves;
    int count;
    ms_traffic_group group;
    ms_collective collective;
    double size_bytes; /* bytes of one collective */
    double exposed_s, hidden_s;
    /* seconds by which the hidden collective slows down the kernels that it overlaps */
    double interference_s;
    bool waits_later; /* only the next collective on the stream waits for this one */
    /* the collective's hidden share overlaps later operations; false: the kernels before
     * it that take overlapped_s, at least one (ms_first_overlapped) */
    bool overlaps_later_ops;
    double overlapped_s;
    bool ring;
    /* total number, bytes and seconds (exposed + hidden) of the operation's collectives;
     * with count 0 of the earlier ones */
    int all_count;
    double all_bytes, all_s;
    /* indices, set with the task graph: `name` in graph->labels; kind in ms_link_uses;
     * the kernel, or the exposed part of a collective and its hidden part, in the list of
     * work (ms_task_work) */
    int label, use, work, hidden_work;
} ms_block_op;

/* Whether a pass through a block has run its operation `op`; a split backward runs some. */
typedef bool ms_op_ran(const void *pass, int op);
/* Index of the first kernel that the hidden share of collective ops[index] overlaps,
 * among those that ran before it; -1: none. */
int ms_first_overlapped(const ms_block_op *ops, int index, ms_op_ran *ran,
                        const void *pass);

/* A gather of parameters or a reduction of gradients: a block's share of its unit's. */
typedef struct ms_state_move {
    ms_traffic_group group;
    ms_collective collective;
    double size_bytes;   /* bytes of the transfer; 0: none */
    ms_sync_split split; /* the collectives that it is */
    double seconds;
    int use, work; /* indices, see ms_block_op */
} ms_state_move;

typedef struct ms_block_ops {
    const ms_block_cost *block;
    const ms_program *program;
    int num_ops[MS_NUM_BILL_PASSES];
    ms_block_op *ops[MS_NUM_BILL_PASSES];
    /* transfers of parameters and gradients: dense [0] and expert [1] ones */
    ms_state_move gather[2], regather[2], reduce[2], all_reduce[2];
    ms_state_move replicate, tp_sync;
} ms_block_ops;

/* Task kind of a node's kernel (forward, recompute, ...) by the pass of the node. */
ms_task_kind ms_node_task_kind(const ms_node *node);

/* The blocks of a pipeline stage, in the order in which they run. */
typedef struct ms_stage_blocks {
    int num;
    ms_block_ops **blocks;
} ms_stage_blocks;

/* Registers in `uses` each kind of collective of the blocks, and the sends between
 * pipeline ranks; stores the indices of the kinds in the blocks' operations. */
void ms_stage_blocks_note_uses(const ms_planned *planned, const ms_stage_blocks *blocks,
                               ms_link_uses *uses);
/* Index (ms_link_uses_kind) of the sends between two pipeline ranks. */
int ms_send_use(const ms_planned *planned, ms_link_uses *uses, int from, int to);

/* Makes the blocks of each pipeline stage; equal blocks share one ms_block_ops. The
 * result lives in the arena. */
ms_stage_blocks *ms_stage_blocks_make(ms_arena *arena, const ms_planned *planned);

#endif
