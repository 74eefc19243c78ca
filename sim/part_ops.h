/* A part of the model (embedding, a layer, the head) as what a rank runs for it: kernels
 * and collectives in the order of its program, and what its sharding moves. Exposed and
 * hidden shares of collectives are those of the closed form (sim/stage.h). */
#ifndef MS_SIM_PART_OPS_H
#define MS_SIM_PART_OPS_H

#include "sim/graph.h"
#include "sim/link_uses.h"
#include "sim/planned.h"
#include "sim/traffic.h"

/* A kernel, waiting for the host, or a collective. */
typedef struct ms_part_op {
    unsigned char kind; /* ms_task_kind */
    bool weight;        /* runs with gradients of weights, when the backward is split */
    const char *name;
    double compute_s;    /* of a kernel or the host; 0 for collectives */
    const ms_node *node; /* of a kernel that a node of the program is; NULL: none */
    /* of collectives: `count` alike, one after the other; 0: their exposed share alone */
    bool moves;
    int count;
    ms_traffic_group group;
    ms_collective collective;
    double size_bytes; /* of one */
    double exposed_s, hidden_s;
    double interference_s; /* that the hidden share costs the kernels beside it */
    bool goes_on; /* nothing waits for it but the next collective on its stream */
    /* beside what follows, otherwise beside what comes before it, from op `beside` on */
    bool hides_after;
    int beside;
    bool ring;
    /* what it moves in all, of which it may expose or hide a share only */
    int all_count;
    double all_bytes, all_s;
    int label, use; /* of the graph, and of link uses; for its builder */
} ms_part_op;

/* Of parameters and gradients. */
typedef struct ms_state_move {
    ms_traffic_group group;
    ms_collective collective;
    double size_bytes; /* 0: nothing moves */
    double seconds;
    int use;
} ms_state_move;

typedef struct ms_part_ops {
    const ms_part *part;
    const ms_program *program;
    int num_ops[MS_NUM_BILL_PASSES];
    ms_part_op *ops[MS_NUM_BILL_PASSES];
    /* dense and expert parameters */
    ms_state_move gather[2], reduce[2], all_reduce[2];
    ms_state_move replicate, tp_sync;
} ms_part_ops;

/* What a kernel of a node is in traces and sums, by its pass. */
ms_task_kind ms_node_task_kind(const ms_node *node);

/* The parts of every stage of the model, in the order in which they run. */
typedef struct ms_stage_parts {
    int num;
    ms_part_ops **parts;
} ms_stage_parts;

/* All collectives of all parts, and sends between pipeline ranks, as kinds of link uses;
 * their numbers are kept in the parts. */
void ms_stage_parts_note_uses(const ms_planned *planned, const ms_stage_parts *parts,
                              ms_link_uses *uses);
/* The kind of a send from one pipeline rank to another. */
int ms_send_use(const ms_planned *planned, ms_link_uses *uses, int from, int to);

/* (stages of the model); parts that are alike are made once. Lives in the arena. */
ms_stage_parts *ms_stage_parts_make(ms_arena *arena, const ms_planned *planned);

#endif
