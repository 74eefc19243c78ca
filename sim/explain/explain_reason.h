/* Reasons, as text, why a tensor's placement on ranks changes: the nodes that make the
 * tensor, or those that need the result. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_REASON_H
#define MS_SIM_EXPLAIN_EXPLAIN_REASON_H

#include "costmodel/program/program.h"

/* Text of a placement on one mesh axis: "R" (replicated), "S(s)" and "SS(n,2)" (sharded),
 * "P" and "P(max)" (partial). */
const char *ms_placement_word(ms_arena *arena, ms_placement placement);

/* Text of a tensor's placement, "S(b)@dp S(s)@tp"; "whole": replicated on all axes. */
const char *ms_tensor_placement_text(ms_arena *arena, const ms_program *program,
                                     int tensor);

/* Text of the change that a node (e.g. REDISTRIBUTE) makes: "S(s) -> R @tp". */
const char *ms_node_change_text(ms_arena *arena, const ms_program *program,
                                const ms_node *node);

/* Text of why a node changes a placement, by the nodes around it: "mlp.gate, mlp.up are
 * split by f and need every s". */
const char *ms_node_reason_text(ms_arena *arena, const ms_program *program,
                                const ms_node *node);

#endif
