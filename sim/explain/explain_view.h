/* The part of an explanation that is shown, its JSON, and names that outputs share. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_VIEW_H
#define MS_SIM_EXPLAIN_EXPLAIN_VIEW_H

#include "sim/explain/explain.h"

/* What is shown. */
typedef struct ms_explain_view {
    bool collectives, tensors, figures, answers;
    bool sources; /* of all figures; else the figures that matter most, without */
    /* tensors and collectives of one part; NULL: tensors of the main one, all
     * collectives */
    const char *part;
} ms_explain_view;

/* MS_EINPUT when the plan has no part of that name; "layer" means the main one. */
ms_status ms_explain_check_block(ms_ctx *cx, const ms_explanation *e, const char *name);

/* The members of meshsim.explain/1 besides the plan, into an object that is open: parts
 * with all tensors and nodes, collectives, axes, and what was asked of coefficients
 * and answers. */
void ms_explanation_write_fields(ms_jout *out, ms_arena *arena, const ms_explanation *e,
                                 const ms_explain_view *view);

/* Whether a part goes by the name. */
bool ms_explain_block_is(const ms_explanation *e, const ms_explain_block *part,
                         const char *name);

/* Between steps, what the sharding does to a weight of the part: "S@dp_shard"; NULL:
 * whole on each rank. */
const char *ms_explain_state_axis(const ms_explanation *e, bool expert);

/* "forward" "backward" "optimizer": when it runs. */
const char *ms_explain_pass(const ms_explain_collective *collective);

/* "512x8192x8192", by global or local sizes. */
const char *ms_tensor_shape_text(ms_arena *arena, const ms_program *program, int tensor,
                                 bool local);

/* Weights, and activations of the forward pass. */
bool ms_tensor_is_forward(const ms_program *program, const ms_tensor *tensor);

/* "weight" "input" or the name of the operation that makes it. */
const char *ms_tensor_maker(const ms_program *program, int tensor);

#endif
