/* Why a placement change is in a program: who made what it changes, and who needs the
 * result, in words. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_REASON_H
#define MS_SIM_EXPLAIN_EXPLAIN_REASON_H

#include "costmodel/program/program.h"

/* "R", "S(s)", "SS(n,2)", "P", "P(max)". */
const char *ms_placement_word(ms_arena *arena, ms_placement placement);

/* "S(b)@dp S(s)@tp": axes of one rank are left out; "whole" when nothing is split. */
const char *ms_tensor_placement_text(ms_arena *arena, const ms_program *program,
                                     int tensor);

/* What a REDISTRIBUTE or EXCHANGE node, or the attention of a ring, changes: "S(s) -> R
 * @tp". */
const char *ms_node_change_text(ms_arena *arena, const ms_program *program,
                                const ms_node *node);

/* One sentence from the nodes around it: "mlp.gate, mlp.up are split by f and need every
 * s". */
const char *ms_node_reason_text(ms_arena *arena, const ms_program *program,
                                const ms_node *node);

#endif
