/* Operations ACTIVATION, ADD, DROPOUT_GRAD, GATE and their gradients on a GPU. */
#ifndef MS_EXEC_CUDA_CUDA_ACTIVATION_H
#define MS_EXEC_CUDA_CUDA_ACTIVATION_H

#include "exec/core/scalar.h"

#ifdef __cplusplus
extern "C" {
#else
#include "exec/cuda/cuda_call.h"
ms_cuda_op ms_cuda_concat, ms_cuda_concat_grad;
ms_cuda_op ms_cuda_activation, ms_cuda_activation_grad, ms_cuda_add, ms_cuda_dropout_grad,
    ms_cuda_gate, ms_cuda_gate_grad;
#endif

typedef struct ms_cuda_stream ms_cuda_stream;

typedef enum ms_cuda_curve {
    MS_CUDA_SILU,
    MS_CUDA_RELU,
    MS_CUDA_RELU2,
    MS_CUDA_GELU,
    MS_CUDA_GELU_TANH
} ms_cuda_curve;

/* Forward: out = curve(x), times `factor` if not NULL. Backward: gx and gfactor, the
 * gradients of x and factor, from gout, that of out. All arrays have `count` elements. */
typedef struct ms_cuda_activation_args {
    ms_scalar scalar;
    ms_cuda_curve curve;
    long count;
    const void *x;
    const void *factor; /* gate factors; NULL if the activation is not gated */
    void *out;
    const void *gout;
    void *gx, *gfactor;
} ms_cuda_activation_args;

void ms_cuda_activate(ms_cuda_stream *stream, const ms_cuda_activation_args *args);
void ms_cuda_activate_grad(ms_cuda_stream *stream, const ms_cuda_activation_args *args);

typedef struct ms_cuda_sum_of_two {
    ms_scalar scalar;
    long count;
    const void *x, *y;
    void *out;
    unsigned char *mask; /* dropout mask, set to 1: nothing is dropped; or NULL */
} ms_cuda_sum_of_two;

void ms_cuda_add_two(ms_cuda_stream *stream, const ms_cuda_sum_of_two *args);

typedef struct ms_cuda_masked {
    ms_scalar scalar;
    long count;
    const void *x;
    const unsigned char *mask; /* dropout mask: out is 0 where it is 0, otherwise x */
    void *out;
} ms_cuda_masked;

void ms_cuda_mask(ms_cuda_stream *stream, const ms_cuda_masked *args);

/* Forward: out = x sigmoid(gate[row]). Backward: gx and ggate, the gradients of x and
 * gate, from gout, that of out. x is (num_rows, width), gate (num_rows). */
typedef struct ms_cuda_gate_args {
    ms_scalar scalar;
    long num_rows, width;
    const void *x, *gate;
    void *out;
    const void *gout;
    void *gx, *ggate;
} ms_cuda_gate_args;

void ms_cuda_gate_rows(ms_cuda_stream *stream, const ms_cuda_gate_args *args);
void ms_cuda_gate_rows_grad(ms_cuda_stream *stream, const ms_cuda_gate_args *args);

#ifdef __cplusplus
}
#endif

#endif
