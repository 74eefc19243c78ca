/* Where the time of a step goes, by kind of node: kernels of one name, and what compute
 * waited for. The same for a simulated step and for a measured one, so that they can be
 * joined. Of a rank every moment counts once: while a kernel runs it is the kernel's;
 * while none runs it is of the transfer that the next kernel waits for (to come from
 * another stage, to end, or for its other members to begin); a transfer beside kernels
 * takes no time. What is left of a rank's step belongs to no kind: in runs the runner
 * itself, in both the wait for the rank that ends last. */
#ifndef MS_SIM_NODE_KINDS_H
#define MS_SIM_NODE_KINDS_H

#include "base/json.h"
#include "sim/simulation.h"

/* Seconds of one step, added over all ranks. */
typedef struct ms_node_kind {
    const char *name; /* of the node, or what is moved (sim/move_names.h) */
    /* ms_task_kind; what is waited for from another stage is MS_TASK_RECEIVE */
    int task_kind;
    double count;                   /* in a step */
    double measured_s, predicted_s; /* NaN: not measured, not predicted */
} ms_node_kind;

typedef struct ms_node_kinds {
    ms_arena *arena;
    int num, room;
    ms_node_kind *kinds;
    int num_slots;
    int *slots; /* (num_slots): 1 + index, by hash; 0: free */
} ms_node_kinds;

ms_node_kinds ms_node_kinds_make(ms_arena *arena);
/* The kind, added if it is new (count 0, NaN). Valid until the next is added; `name` must
 * outlive the kinds. */
ms_node_kind *ms_node_kinds_at(ms_node_kinds *all, const char *name, int task_kind);
/* Most seconds first, measured ones if there are any; not to be added to any more. */
void ms_node_kinds_sort(ms_node_kinds *all);

/* Predicted seconds of a simulation by nodes, sorted; of one by actions none. Lives in
 * the arena. */
ms_node_kinds ms_simulated_kinds(ms_arena *arena, const ms_simulation *simulation);

/* "mlp.down forward". Lives in the arena. */
const char *ms_node_kind_text(ms_arena *arena, const ms_node_kind *kind);

/* "nodes": [{kind, count, measured_s, predicted_s}], of simulations without
 * measured_s. */
void ms_node_kinds_write_json(ms_jout *out, const ms_node_kinds *all, bool is_measured);

#endif
