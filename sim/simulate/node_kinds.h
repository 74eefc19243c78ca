/* Seconds of a step by kind of node (kernels or transfers of one name), simulated or
 * measured, so that both can be compared. Every moment of a rank counts for one kind:
 * while a kernel runs for the kernel; while none runs for the transfer that the next
 * kernel waits for: its message from another stage, its end, or other ranks that must
 * take part in it. Two times belong to no kind: a real run's time between nodes, and the
 * wait at the end of the step for the last rank. */
#ifndef MS_SIM_SIMULATE_NODE_KINDS_H
#define MS_SIM_SIMULATE_NODE_KINDS_H

#include "base/json.h"
#include "sim/simulate/simulation.h"

/* A kind of node with its seconds in one step, summed over all ranks. */
typedef struct ms_node_kind {
    const char *name; /* node of a layer program, or name of move_names.h */
    /* ms_task_kind; MS_TASK_RECEIVE: waiting for a message from another stage */
    int task_kind;
    double count;                   /* number of executions in a step, over all ranks */
    double measured_s, predicted_s; /* seconds; NaN: not measured or not predicted */
} ms_node_kind;

typedef struct ms_node_kinds {
    ms_arena *arena;
    int num, room;
    ms_node_kind *kinds;
    int num_slots;
    int *slots; /* (num_slots): hash table: 1 + the index of a kind; 0: free */
} ms_node_kinds;

ms_node_kinds ms_node_kinds_make(ms_arena *arena);
/* Finds the kind of this name and task kind, or adds it with count 0 and NaN seconds. The
 * pointer is valid until another kind is added; `name` must outlive the kinds. */
ms_node_kind *ms_node_kinds_at(ms_node_kinds *all, const char *name, int task_kind);
/* Sorts kinds by measured seconds, or by predicted ones if not measured, largest first.
 * No kind may be added afterwards. */
void ms_node_kinds_sort(ms_node_kinds *all);

/* Predicted seconds by kind of node of a simulation with MS_DETAIL_NODE, sorted; an empty
 * list with MS_DETAIL_ACTION. Lives in the arena. */
ms_node_kinds ms_simulated_kinds(ms_arena *arena, const ms_simulation *simulation);

/* Name and task kind of a kind of node: "mlp.down forward". Lives in the arena. */
const char *ms_node_kind_text(ms_arena *arena, const ms_node_kind *kind);

/* Writes "nodes": [{kind, count, measured_s (only with is_measured), predicted_s}]. */
void ms_node_kinds_write_json(ms_jout *out, const ms_node_kinds *all, bool is_measured);

#endif
