/* Names and positions of weights in Hugging Face's tensors. A weight's initial value
 * depends only on (seed, name, index in that tensor), whatever the parallelization. */
#ifndef MS_EXEC_PARAMS_NAMES_H
#define MS_EXEC_PARAMS_NAMES_H

#include "costmodel/program/program.h"
#include "exec/core/array_args.h"

#include <stdint.h>

#define MS_NAME_TEXT 160

/* Position of a weight in Hugging Face's tensors: the weight's element with global index
 * i[] is element offset + sum over dims d of stride[d] i[d] of the tensor `name`. Each
 * expert has a tensor of its own: `name` has "%ld" for the expert, and stride[expert_dim]
 * is 0. Vocabulary rows that pad for tp have indices from `count` on and the value 0.
 * Sources: transformers modeling_llama.py, modeling_mixtral.py, modeling_deepseek_v3.py,
 * modeling_gpt2.py (Conv1D is [in, out], others [out, in]). */
typedef struct ms_weight_name {
    char name[MS_NAME_TEXT];
    int expert_dim; /* the weight's dim that counts experts; -1 if none */
    int num_dims;   /* number of dims of the tensor `name` */
    long shape[MS_MAX_DIMS];
    long count; /* number of elements of the tensor */
    long offset;
    long stride[MS_MAX_DIMS];
    bool is_norm, is_bias; /* norms start at 1, biases at 0 */
    /* another block's or earlier matrix, whose name it has: a tied head, the embedding and
     * the output matrix of a module of multi-token prediction */
    bool is_tied;
} ms_weight_name;

/* Name and position of a weight in model layer `layer`; modules of multi-token prediction
 * are layers after the last, as in Hugging Face's checkpoints of DeepSeek-V3; weights that names.c does not
 * list are named like "model.layers.3.attention.query.weight". */
void ms_weight_name_of(const ms_program *program, int weight, long layer,
                       ms_weight_name *out);

/* Writes an expert's tensor name; other names are copied. */
void ms_weight_name_text(const ms_weight_name *name, long expert, char out[MS_NAME_TEXT]);

/* Random initial weights: normal numbers with standard deviation `deviation`. Norms are 1
 * and biases 0, plus (for tests) a uniform number in -spread..spread. Random numbers come
 * from SplitMix64 of (seed, hash of the name, element) and Box-Muller. */
typedef struct ms_initial {
    uint64_t seed;
    double deviation;
    double spread;
} ms_initial;
/* Seed of a tensor's random values: a hash of run seed and name (FNV-1a, 64 bits). */
uint64_t ms_initial_key(const ms_initial *initial, const char *name);
/* Initial value of one element of the tensor with seed `key` (ms_initial_key). */
double ms_initial_value(const ms_initial *initial, uint64_t key, long element,
                        bool is_norm, bool is_bias);

/* Initial values of elements first .. first + num - 1 of a shard; padding is 0. */
void ms_initial_values(const ms_initial_piece *piece, long first, long num, double *out);

#endif
