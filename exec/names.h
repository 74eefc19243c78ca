/* Weights as Hugging Face names them, and how a program's tensors lie in them. The value
 * of a weight depends on (seed, name, place in that tensor) only, so that every layout of
 * ranks gives the same model. */
#ifndef MS_EXEC_NAMES_H
#define MS_EXEC_NAMES_H

#include "costmodel/program.h"
#include "exec/array_args.h"

#include <stdint.h>

#define MS_NAME_TEXT 160

/* A program's weight as a part of tensors of Hugging Face: the element with index i[] (by
 * dim of the program's tensor, global) is element offset + sum over dims of stride[d]
 * i[d] of the tensor `name`. Where one dim counts experts, each expert is a tensor of its
 * own: `name` has "%ld" in its place, stride is 0 for it. A vocabulary that was padded
 * for tp has its further rows at places from `count` on: they are in no tensor, and 0.
 * Conventions: transformers modeling_llama.py, modeling_mixtral.py,
 * modeling_deepseek_v3.py, modeling_gpt2.py (Conv1D is [in, out], others [out, in]). */
typedef struct ms_weight_name {
    char name[MS_NAME_TEXT];
    int expert_dim; /* -1: none */
    int num_dims;   /* of the tensor `name` */
    long shape[MS_MAX_DIMS];
    long count; /* product of shape */
    long offset;
    long stride[MS_MAX_DIMS];
    bool is_norm, is_bias; /* start at 1 and at 0 */
    /* the head's matrix of a model with tied embeddings: the embedding's name */
    bool is_tied;
} ms_weight_name;

/* `weight`: a tensor of the program with MS_ROLE_WEIGHT; `layer`: of the model, for layer
 * programs. Families of which transformers has no such tensor, and those not listed in
 * names.c, get clear names of our own: "model.layers.3.attention.query.weight". */
void ms_weight_name_of(const ms_program *program, int weight, long layer,
                       ms_weight_name *out);

/* The name with its expert. */
void ms_weight_name_text(const ms_weight_name *name, long expert, char out[MS_NAME_TEXT]);

/* Initial value: normal with standard deviation `deviation` (norms 1, biases 0), by
 * SplitMix64 of (seed, hash of the name, element) and Box-Muller. A `spread` > 0 is added
 * to norms and biases as well (uniform within +- spread), for tests in which all
 * gradients must matter. */
typedef struct ms_initial {
    uint64_t seed;
    double deviation;
    double spread;
} ms_initial;
/* Key of a tensor: seed and name (FNV-1a, 64 bits). */
uint64_t ms_initial_key(const ms_initial *initial, const char *name);
double ms_initial_value(const ms_initial *initial, uint64_t key, long element,
                        bool is_norm, bool is_bias);

/* Values of elements first .. first + num - 1 of the piece; padding is 0. */
void ms_initial_values(const ms_initial_piece *piece, long first, long num, double *out);

#endif
