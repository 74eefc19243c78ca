/* The shown part of an explanation, its JSON, and names that several outputs use. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_VIEW_H
#define MS_SIM_EXPLAIN_EXPLAIN_VIEW_H

#include "sim/explain/explain.h"

/* The lists of an explanation that are shown. */
typedef struct ms_explain_view {
    bool collectives, tensors, figures, answers;
    bool sources; /* all input numbers, with sources; false: the most effective ones */
    /* name of the block whose tensors and collectives are shown; NULL: the tensors of the
     * most frequent layer, and the collectives of all blocks */
    const char *block;
} ms_explain_view;

/* MS_EINPUT unless the plan has the named block ("layer": the most frequent layer). */
ms_status ms_explain_check_block(ms_ctx *cx, const ms_explanation *e, const char *name);

/* Writes the fields of schema meshsim.explain/1 except the plan into an open JSON object:
 * blocks, collectives, axes, and if shown input numbers and answers. */
void ms_explanation_write_fields(ms_jout *out, ms_arena *arena, const ms_explanation *e,
                                 const ms_explain_view *view);

/* Whether `block` has this name, or is the most frequent layer and `name` is "layer". */
bool ms_explain_block_is(const ms_explanation *e, const ms_explain_block *block,
                         const char *name);

/* Axes over which ZeRO shards the optimizer states and the like of dense weights, or if
 * `expert` of expert weights: "dp_shard"; NULL: nothing is sharded. */
const char *ms_explain_state_axis(const ms_explanation *e, bool expert);

/* Pass in which a collective runs: "forward", "backward", "optimizer". */
const char *ms_explain_pass(const ms_explain_collective *collective);

/* Text of the shape of a tensor, or if `local` of a rank's part: "512x8192x8192". */
const char *ms_tensor_shape_text(ms_arena *arena, const ms_program *program, int tensor,
                                 bool local);

/* Whether a tensor is a weight, or an activation of the forward pass. */
bool ms_tensor_is_forward(const ms_program *program, const ms_tensor *tensor);

/* Where a tensor comes from: "weight", "input" or the name of the operation. */
const char *ms_tensor_maker(const ms_program *program, int tensor);

#endif
