/* Rotary positions (ROTARY) and MLA's keys (MLA_KEYS and gradient) on a GPU. */
#ifndef MS_EXEC_CUDA_CUDA_ROTARY_H
#define MS_EXEC_CUDA_CUDA_ROTARY_H

#include "exec/core/rotary.h"
#include "exec/core/scalar.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda/cuda_call.h"
ms_cuda_op ms_cuda_rotary, ms_cuda_mla_keys, ms_cuda_mla_keys_grad;
ms_cuda_workspace ms_cuda_rotary_bytes;
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

/* The angles of some positions, made once in a run. */
typedef struct ms_cuda_angle_table {
    ms_scalar scalar;
    long length, first_stored;
    ms_rotary how;
    const int *positions;
    void *angles;
} ms_cuda_angle_table;

/* A rank's tables: one for each length and first token of its sequences, so few; further
 * ones are made in the workspace at each use. */
#define MS_CUDA_ANGLE_TABLES 4
typedef struct ms_cuda_angle_tables {
    int num;
    ms_cuda_angle_table table[MS_CUDA_ANGLE_TABLES];
    /* device memory that lasts as long as the tables; NULL: none is left */
    void *(*take)(void *state, size_t bytes);
    void *state;
} ms_cuda_angle_tables;

/* Rotation of x (outer, length, heads, width) by `how`. */
typedef struct ms_cuda_rotary_args {
    ms_scalar scalar;
    long outer, length;
    int heads, width;
    const void *x;
    void *out;
    ms_rotary how;
    bool is_inverse;
    long first_stored;    /* index of x's first token among those stored */
    const int *positions; /* position of each stored token; NULL if in order */
    void *angles; /* (length, 2, how.count): cosines, sines; fp32, or fp64 for fp64 */
} ms_cuda_rotary_args;

/* Writes args->angles, which do not depend on x and is_inverse. */
void ms_cuda_make_angles(ms_cuda_stream *stream, const ms_cuda_rotary_args *args);
/* Rotates by args->angles, made before on the stream. */
void ms_cuda_rotate(ms_cuda_stream *stream, const ms_cuda_rotary_args *args);

/* Keys of multi-head latent attention: up (num_tokens, heads, nope + value), shared
 * (num_tokens, rope), k (num_tokens, heads, nope + rope), v (num_tokens, heads, value).
 * Forward: k, v from up, shared; backward: gradients of up, shared from those of k, v. */
typedef struct ms_cuda_mla_args {
    ms_scalar scalar;
    long num_tokens;
    int heads, nope, rope, value;
    void *up, *shared, *k, *v;
} ms_cuda_mla_args;

void ms_cuda_join_keys(ms_cuda_stream *stream, const ms_cuda_mla_args *args);
void ms_cuda_join_keys_grad(ms_cuda_stream *stream, const ms_cuda_mla_args *args);

#ifdef __cplusplus
}
#endif

#endif
