/* Seconds of a step by kind of node (kernels or transfers of one name), for simulated
 * and for measured steps alike, so that they can be joined. Every moment of a rank
 * counts once. While a kernel runs, the moment belongs to the kernel. While none runs,
 * it belongs to the transfer that the next kernel waits for, be it the arrival from
 * another stage, the end of the transfer, or its other members. A transfer that
 * overlaps with kernels takes no time. The rest of a rank's step belongs to no kind:
 * the runner itself in executions, and in both the wait for the rank that ends last. */
#ifndef MS_SIM_SIMULATE_NODE_KINDS_H
#define MS_SIM_SIMULATE_NODE_KINDS_H

#include "base/json.h"
#include "sim/simulate/simulation.h"

/* A kind of node with its seconds of one step, added over all ranks. */
typedef struct ms_node_kind {
    const char
        *name; /* name of the node or of the transfer (sim/simulate/move_names.h) */
    /* an ms_task_kind; MS_TASK_RECEIVE: waits for another stage */
    int task_kind;
    double count;                   /* number of executions in a step, over all ranks */
    double measured_s, predicted_s; /* seconds; NaN: not measured or not predicted */
} ms_node_kind;

typedef struct ms_node_kinds {
    ms_arena *arena;
    int num, room;
    ms_node_kind *kinds;
    int num_slots;
    int *slots; /* (num_slots): hash table: index of a kind + 1; 0: free */
} ms_node_kinds;

ms_node_kinds ms_node_kinds_make(ms_arena *arena);
/* The kind of this name and task kind, added with count 0 and NaN seconds if it is
 * new. The pointer is valid until another kind is added; `name` must outlive the
 * kinds. */
ms_node_kind *ms_node_kinds_at(ms_node_kinds *all, const char *name, int task_kind);
/* Sorts by measured seconds, or predicted ones if there are none, largest first. No
 * kind may be added afterwards. */
void ms_node_kinds_sort(ms_node_kinds *all);

/* Predicted seconds of a simulation with a task per node, sorted; empty with a task
 * per action. Lives in the arena. */
ms_node_kinds ms_simulated_kinds(ms_arena *arena, const ms_simulation *simulation);

/* Name and task kind: "mlp.down forward". Lives in the arena. */
const char *ms_node_kind_text(ms_arena *arena, const ms_node_kind *kind);

/* Writes "nodes": [{kind, count, measured_s, predicted_s}]; measured_s only with
 * is_measured. */
void ms_node_kinds_write_json(ms_jout *out, const ms_node_kinds *all, bool is_measured);

#endif
