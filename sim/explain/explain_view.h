/* The part of an explanation that is shown, its JSON, and names that outputs share. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_VIEW_H
#define MS_SIM_EXPLAIN_EXPLAIN_VIEW_H

#include "sim/explain/explain.h"

/* Which lists of an explanation are shown. */
typedef struct ms_explain_view {
    bool collectives, tensors, figures, answers;
    bool sources; /* all figures with sources; else the most effective ones, without */
    /* block whose tensors and collectives are shown; NULL: tensors of the main block
     * and all collectives */
    const char *part;
} ms_explain_view;

/* MS_EINPUT if the plan has no block of that name; "layer" is its most frequent layer. */
ms_status ms_explain_check_block(ms_ctx *cx, const ms_explanation *e, const char *name);

/* Writes meshsim.explain/1 except the plan into an open object: blocks with all tensors
 * and nodes, collectives, axes, and coefficients and answers if shown. */
void ms_explanation_write_fields(ms_jout *out, ms_arena *arena, const ms_explanation *e,
                                 const ms_explain_view *view);

/* Whether a block has the name; "layer" is the most frequent kind of layer. */
bool ms_explain_block_is(const ms_explanation *e, const ms_explain_block *part,
                         const char *name);

/* Axes that shard optimizer states, gradients or parameters of dense or expert
 * weights: "dp_shard"; NULL if whole on each rank. */
const char *ms_explain_state_axis(const ms_explanation *e, bool expert);

/* Pass in which a collective runs: "forward", "backward", "optimizer". */
const char *ms_explain_pass(const ms_explain_collective *collective);

/* Global or local shape of a tensor: "512x8192x8192". */
const char *ms_tensor_shape_text(ms_arena *arena, const ms_program *program, int tensor,
                                 bool local);

/* Whether a tensor is a weight, or an activation of the forward pass. */
bool ms_tensor_is_forward(const ms_program *program, const ms_tensor *tensor);

/* Origin of a tensor: "weight", "input" or the name of the operation. */
const char *ms_tensor_maker(const ms_program *program, int tensor);

#endif
