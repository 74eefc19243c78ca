/* Reason of a placement change in a program, in words: the nodes that make the tensor, or
 * those that need the result. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_REASON_H
#define MS_SIM_EXPLAIN_EXPLAIN_REASON_H

#include "costmodel/program/program.h"

/* Placement on one mesh axis as text: "R", "S(s)", "SS(n,2)", "P", "P(max)". */
const char *ms_placement_word(ms_arena *arena, ms_placement placement);

/* Placement without axes of one rank: "S(b)@dp S(s)@tp"; "whole" if not split. */
const char *ms_tensor_placement_text(ms_arena *arena, const ms_program *program,
                                     int tensor);

/* The change of a REDISTRIBUTE or EXCHANGE node or of ring attention: "S(s) -> R @tp". */
const char *ms_node_change_text(ms_arena *arena, const ms_program *program,
                                const ms_node *node);

/* Why the placement changes, by its neighbours: "mlp.gate, mlp.up are split by f and
 * need every s". */
const char *ms_node_reason_text(ms_arena *arena, const ms_program *program,
                                const ms_node *node);

#endif
