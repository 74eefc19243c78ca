/* The builder of layer programs: layer.c writes forward nodes, propagate.c places their
 * tensors; backward.c, recompute.c and optimizer.c add their passes. */
#ifndef MS_COSTMODEL_PROGRAM_PROGRAM_PRIV_H
#define MS_COSTMODEL_PROGRAM_PROGRAM_PRIV_H

#include "costmodel/model/model_priv.h"
#include "costmodel/program/program.h"
#include "costmodel/tensor/einsum.h"

#define MS_MAX_TENSORS       1536
#define MS_MAX_NODES         1024
#define MS_MAX_CONVERSIONS   512
#define MS_MAX_CONTRIBUTIONS 3

typedef struct ms_conversion {
    int tensor, result;
    unsigned char axis;
    ms_placement to;
} ms_conversion;

/* Gradients of one forward tensor that are still to be summed, one per placement. */
typedef struct ms_contributions {
    int num;
    int tensor[MS_MAX_CONTRIBUTIONS];
} ms_contributions;

typedef struct ms_builder {
    ms_arena *arena;     /* arena of the finished program */
    ms_program *program; /* program being built; its arrays are those below */
    const ms_model *model;
    ms_tensor tensors[MS_MAX_TENSORS];
    ms_node nodes[MS_MAX_NODES];
    /* [forward node][axis] split letter, MS_WHOLE or MS_LINEAR */
    char strategy[MS_MAX_NODES][MS_MESH_AXES];
    int num_tensors, num_nodes;
    unsigned char pass;
    unsigned short modules; /* ms_node.modules of nodes that are written now */
    unsigned char module;   /* module of multi-token prediction being written; 0: none */
    int num_conversions;
    ms_conversion conversions[MS_MAX_CONVERSIONS];
    ms_contributions gradient[MS_MAX_TENSORS];
    /* logits of the head and of prediction modules, in the order of their losses */
    int num_logits, logits[1 + MS_MAX_NEXTN_LAYERS];
    /* results of the adapter matrices A that query, key and value share, and gate and up;
     * -1: none yet (lora.c) */
    int adapter_input[2];
    /* recompute.c: a copy of all nodes before recomputed nodes are inserted */
    ms_node forward[MS_MAX_NODES];
    int num_written; /* nodes in `forward` */
    int clone[MS_MAX_NODES];
} ms_builder;

/* ---- tensors and nodes (program.c) ---- */

int ms_add_tensor(ms_builder *b, const char *name, const char *dims, ms_role role,
                  double element_bytes);
/* Adds a tensor with the name, dims and placements of `model`. */
int ms_add_tensor_like(ms_builder *b, int model, ms_role role, double element_bytes);
/* Appends an operand to a node. */
void ms_node_take(ms_node *node, int tensor);
/* Appends a result to a node; returns the tensor. */
int ms_node_give(ms_node *node, int tensor);
/* Appends a node to the program as the producer of its results; returns its index. */
int ms_push_node(ms_builder *b, const ms_node *node);
/* Whether placements on a mesh axis matter: not if it has size 1, except axis 0, whose
 * splits must be reduced whatever its size. */
bool ms_axis_active(const ms_program *program, int mesh, int axis);

/* ---- propagation (propagate.c) ---- */

/* Appends a node: redistributes its inputs where needed and places its results. */
int ms_emit(ms_builder *b, ms_node *node);
/* Returns `tensor` if placed as `to` on `axis`, else a copy placed so, made only once. */
int ms_convert(ms_builder *b, int tensor, int axis, ms_placement to);
/* Placement of the residual stream on an axis of the dense mesh. */
ms_placement ms_stream_placement(const ms_builder *b, int axis);
int ms_to_stream(ms_builder *b, int tensor);
/* The letter by which `operand` (index `input`; -1: it is a result) is split if its node
 * is sharded by `letter`; 0: it stays whole. */
char ms_operand_letter(const ms_node *node, const ms_tensor *operand, int input, int axis,
                       char letter);

/* Placement `at` on a dense axis; strided where cp splits heads that tp splits too. */
ms_placement ms_placed_over(const ms_program *program, int axis, ms_placement at);

/* ---- parts (layer.c) ---- */

void ms_write_embedding(ms_builder *b);
void ms_write_layer(ms_builder *b);
void ms_write_head(ms_builder *b);

/* ---- shorthand of layers (emit.c) ---- */

/* Bytes of a log-sum-exp, loss or routing value: fp32, or fp64 if all tensors are. */
double ms_statistic_bytes(const ms_builder *b);
int ms_add_activation(ms_builder *b, const char *name, const char *dims);
int ms_add_statistic(ms_builder *b, const char *name, const char *dims);
/* A weight of the dense mesh, split over tp by a letter of its dims; 0: replicated. */
int ms_add_weight(ms_builder *b, const char *name, const char *dims, char tp_letter);
/* Weights of the model, on the dense mesh or of experts; frozen if adapters are trained. */
int ms_model_weight(ms_builder *b, const char *name, const char *dims, char tp_letter);
int ms_expert_weight(ms_builder *b, const char *name, const char *dims);
/* Copies the letters of an einsum's second operand, the weight. */
void ms_copy_weight_dims(const char *einsum, char dims[MS_MAX_DIMS + 1]);

/* A node with operands x and y; `y` is -1 for an operation of one operand. */
ms_node ms_operation(ms_op op, const char *name, int x, int y);
/* Gives the node a result of the node's name and these dims. */
int ms_add_result(ms_builder *b, ms_node *node, const char *dims);
/* Nodes that are added with their weights, if any; they return their result. Dims of
 * ms_emit_one are those of the result; a norm is over the last `width` dims of x. */
int ms_emit_one(ms_builder *b, ms_node node, const char *dims);
int ms_emit_pointwise(ms_builder *b, ms_op op, const char *name, int x, int y);
int ms_emit_product(ms_builder *b, const char *name, const char *einsum, int x, int w);
int ms_emit_linear(ms_builder *b, const char *name, const char *einsum, int x,
                   char tp_letter);
int ms_emit_bias(ms_builder *b, const char *name, int x, const char *dims,
                 char tp_letter);
int ms_emit_add(ms_builder *b, const char *name, int x, int y);
/* residual + branch; dropout also saves a mask, one byte per element */
int ms_emit_residual(ms_builder *b, const char *name, int residual, int branch);
int ms_emit_norm_over(ms_builder *b, const char *name, int x, ms_norm_kind kind,
                      size_t width);
int ms_emit_norm_of(ms_builder *b, const char *name, int x, ms_norm_kind kind);
int ms_emit_norm(ms_builder *b, const char *name, int x);

/* ---- adapters (lora.c) ---- */

/* Adds to `base`, the result of the linear layer `name` with input x, that of its adapter
 * if it has one; tp_letter: dim of the layer's weight that tp splits, or 0. */
int ms_add_adapter(ms_builder *b, const char *name, int x, int base, char tp_letter);

/* ---- backward (backward.c, recompute.c) ---- */

void ms_write_backward(ms_builder *b);
void ms_write_recompute(ms_builder *b, int num_forward);

/* ---- optimizer (optimizer.c) ---- */

void ms_write_optimizer(ms_builder *b);

#endif
