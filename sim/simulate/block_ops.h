/* Operations of a block (embedding, a layer, the head) on a rank: its kernels and
 * collectives in program order, and the transfers that its sharding needs. Exposed and
 * hidden shares of collectives are those of the closed form (sim/step/stage.h). */
#ifndef MS_SIM_SIMULATE_BLOCK_OPS_H
#define MS_SIM_SIMULATE_BLOCK_OPS_H

#include "sim/engine/graph.h"
#include "sim/simulate/link_uses.h"
#include "sim/step/planned.h"
#include "sim/step/traffic.h"

/* An operation: a kernel, waiting for the host, or a collective. */
typedef struct ms_block_op {
    unsigned char kind; /* kind of the operation (ms_task_kind) */
    bool weight;        /* in the weight half (W) of a split backward */
    const char *name;
    double compute_s;    /* seconds of a kernel or of the host; 0 for collectives */
    const ms_node *node; /* the program's node that the kernel implements; NULL: none */
    /* The fields below describe collectives: `count` equal ones, one after the other;
     * count 0: only their exposed share. */
    bool moves;
    int count;
    ms_traffic_group group;
    ms_collective collective;
    double size_bytes; /* bytes of one collective */
    double exposed_s, hidden_s;
    /* seconds that the hidden share adds to the kernels that it overlaps */
    double interference_s;
    bool waits_later; /* only the next collective on the same stream waits for this one */
    /* the collective's hidden share overlaps with later operations; false: with earlier
     * ones, from operation `first_overlapped` on */
    bool overlaps_later_ops;
    int first_overlapped;
    bool ring;
    /* number, bytes and seconds of the whole collectives, of which this operation may
     * expose or hide only a share */
    int all_count;
    double all_bytes, all_s;
    /* indices of task label and kind of link uses; set by the graph's builder */
    int label, use;
} ms_block_op;

/* A gather of parameters or a reduction of gradients. */
typedef struct ms_state_move {
    ms_traffic_group group;
    ms_collective collective;
    double size_bytes; /* bytes of the transfer; 0: none */
    double seconds;
    int use;
} ms_state_move;

typedef struct ms_block_ops {
    const ms_block_cost *part;
    const ms_program *program;
    int num_ops[MS_NUM_BILL_PASSES];
    ms_block_op *ops[MS_NUM_BILL_PASSES];
    /* transfers of dense [0] and expert [1] parameters */
    ms_state_move gather[2], reduce[2], all_reduce[2];
    ms_state_move replicate, tp_sync;
} ms_block_ops;

/* The kind of task that a node's kernel is in traces and sums, by its pass. */
ms_task_kind ms_node_task_kind(const ms_node *node);

/* The blocks of a stage of the model, in the order in which they run. */
typedef struct ms_stage_blocks {
    int num;
    ms_block_ops **parts;
} ms_stage_blocks;

/* Adds the kinds of link uses of all collectives of all blocks and of sends between
 * pipeline ranks; stores their numbers in the blocks. */
void ms_stage_blocks_note_uses(const ms_planned *planned, const ms_stage_blocks *parts,
                               ms_link_uses *uses);
/* The kind of link use of a send from one pipeline rank to another. */
int ms_send_use(const ms_planned *planned, ms_link_uses *uses, int from, int to);

/* The blocks of each stage of the model; equal blocks share one ms_block_ops. Lives in
 * the arena. */
ms_stage_blocks *ms_stage_blocks_make(ms_arena *arena, const ms_planned *planned);

#endif
