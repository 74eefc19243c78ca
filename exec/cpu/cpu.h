/* CPU kernels' declarations and access to operands, compiled once per real type. */
#ifndef MS_EXEC_CPU_CPU_H
#define MS_EXEC_CPU_CPU_H

#include "exec/core/kernel_table.h"
#include "exec/core/real.h"
#include "exec/cpu/gemm.h"

#include <stddef.h>

extern const ms_kernels ms_cpu_table_fp32, ms_cpu_table_fp64;
/* bf16, on top of fp32 (exec/cpu/bf16_table.c); ms_cpu_prepare_bf16, called once before,
 * lists its kernels. */
extern ms_kernels ms_cpu_table_bf16;
void ms_cpu_prepare_bf16(void);

/* ---- kernels and their workspace in bytes ---- */

typedef size_t ms_cpu_workspace(const ms_program *program, const ms_node *node);

ms_kernel MS_TYPED(ms_cpu_einsum), MS_TYPED(ms_cpu_grouped), MS_TYPED(ms_cpu_bias),
    MS_TYPED(ms_cpu_sum_to);
ms_cpu_workspace MS_TYPED(ms_cpu_sum_to_bytes);
ms_kernel MS_TYPED(ms_cpu_add), MS_TYPED(ms_cpu_dropout_grad);
ms_kernel MS_TYPED(ms_cpu_norm), MS_TYPED(ms_cpu_norm_grad);
ms_cpu_workspace MS_TYPED(ms_cpu_norm_grad_bytes);
ms_kernel MS_TYPED(ms_cpu_rotary);
ms_cpu_workspace MS_TYPED(ms_cpu_rotary_bytes);
ms_kernel MS_TYPED(ms_cpu_attention), MS_TYPED(ms_cpu_attention_grad);
ms_cpu_workspace MS_TYPED(ms_cpu_attention_bytes);
ms_kernel MS_TYPED(ms_cpu_sink_grad);
ms_kernel MS_TYPED(ms_cpu_expert_bias), MS_TYPED(ms_cpu_expert_bias_grad);
ms_kernel MS_TYPED(ms_cpu_mla_keys), MS_TYPED(ms_cpu_mla_keys_grad);
ms_kernel MS_TYPED(ms_cpu_activation), MS_TYPED(ms_cpu_activation_grad);
ms_kernel MS_TYPED(ms_cpu_concat), MS_TYPED(ms_cpu_concat_grad);
ms_kernel MS_TYPED(ms_cpu_gate), MS_TYPED(ms_cpu_gate_grad);
ms_kernel MS_TYPED(ms_cpu_embed), MS_TYPED(ms_cpu_embed_grad);
ms_kernel MS_TYPED(ms_cpu_loss_max), MS_TYPED(ms_cpu_loss_sum), MS_TYPED(ms_cpu_loss),
    MS_TYPED(ms_cpu_loss_grad);
ms_kernel MS_TYPED(ms_cpu_route), MS_TYPED(ms_cpu_route_grad);
ms_kernel MS_TYPED(ms_cpu_permute), MS_TYPED(ms_cpu_permute_grad),
    MS_TYPED(ms_cpu_unpermute), MS_TYPED(ms_cpu_unpermute_grad);
ms_kernel MS_TYPED(ms_cpu_scan), MS_TYPED(ms_cpu_scan_grad);
ms_cpu_workspace MS_TYPED(ms_cpu_scan_bytes);
ms_kernel MS_TYPED(ms_cpu_group_norm), MS_TYPED(ms_cpu_group_norm_grad);
ms_cpu_workspace MS_TYPED(ms_cpu_group_norm_grad_bytes);
/* Workspace of ROUTE, PERMUTE, UNPERMUTE and their gradients: one word per expert. */
ms_cpu_workspace MS_TYPED(ms_cpu_experts_bytes);

void MS_TYPED(ms_cpu_attention_block)(const ms_attention_block *block, void *workspace);
void MS_TYPED(ms_cpu_attention_block_grad)(const ms_attention_block *block,
                                           void *workspace);

void MS_TYPED(ms_cpu_vector_add)(void *to, const void *from, long count);
void MS_TYPED(ms_cpu_vector_maximum)(void *to, const void *from, long count);
void MS_TYPED(ms_cpu_vector_scale)(void *x, double factor, long count);
void MS_TYPED(ms_cpu_vector_fill)(void *x, double value, long count);
double MS_TYPED(ms_cpu_vector_sum_of_squares)(const void *x, long count);
bool MS_TYPED(ms_cpu_vector_is_finite)(const void *x, long count);
void MS_TYPED(ms_cpu_vector_from_double)(void *to, const double *from, long count);
void MS_TYPED(ms_cpu_vector_to_double)(double *to, const void *from, long count);
void MS_TYPED(ms_cpu_adamw)(const ms_adamw *how, void *weight, const void *gradient,
                            void *first_moment, void *second_moment, long count);

/* ---- operands ---- */

static inline long ms_cpu_smaller(long a, long b)
{
    return a < b ? a : b;
}

static inline const ms_real *ms_cpu_in(const ms_op_call *call, int operand)
{
    return call->in[operand]->data;
}

static inline ms_real *ms_cpu_out(const ms_op_call *call, int result)
{
    return call->out[result]->data;
}

/* Position in its sequence of the token at index `stored` of the rank's tokens, which
 * context parallelism keeps in another order. */
static inline long ms_cpu_position(const ms_op_call *call, long stored)
{
    return call->batch != NULL && call->batch->positions != NULL
               ? call->batch->positions[stored]
               : stored;
}

/* Where the sequence starts that holds a position of row `row` (of all dp ranks). */
static inline long ms_cpu_start(const ms_op_call *call, long row, long position)
{
    const ms_batch *batch = call->batch;
    if (batch == NULL || batch->starts == NULL)
        return 0;
    return batch
        ->starts[(row - batch->first_sequence) * batch->sequence_length + position];
}

/* Number of partial sums of a long sum, fixed so that all machines add in one order. */
#define MS_CPU_LANES 8

static inline double ms_cpu_sum_lanes(const double *lane)
{
    return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
           ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

static inline double ms_cpu_sum(const ms_real *x, long count)
{
    double lane[MS_CPU_LANES] = {0};
    long i = 0;
    for (; i + MS_CPU_LANES <= count; i += MS_CPU_LANES)
        for (int j = 0; j < MS_CPU_LANES; j++)
            lane[j] += (double)x[i + j];
    for (; i < count; i++)
        lane[0] += (double)x[i];
    return ms_cpu_sum_lanes(lane);
}

static inline double ms_cpu_sum_of_squares(const ms_real *x, double mean, long count)
{
    double lane[MS_CPU_LANES] = {0};
    long i = 0;
    for (; i + MS_CPU_LANES <= count; i += MS_CPU_LANES) {
        for (int j = 0; j < MS_CPU_LANES; j++) {
            double centred = (double)x[i + j] - mean;
            lane[j] += centred * centred;
        }
    }
    for (; i < count; i++)
        lane[0] += ((double)x[i] - mean) * ((double)x[i] - mean);
    return ms_cpu_sum_lanes(lane);
}

#define MS_CPU_MANY_LANES 32

/* The largest element of x, or `least` if that is larger. */
static inline ms_real ms_cpu_largest(const ms_real *x, long count, ms_real least)
{
    ms_real lane[MS_CPU_MANY_LANES];
    for (int j = 0; j < MS_CPU_MANY_LANES; j++)
        lane[j] = least;
    long i = 0;
    for (; i + MS_CPU_MANY_LANES <= count; i += MS_CPU_MANY_LANES)
        for (int j = 0; j < MS_CPU_MANY_LANES; j++)
            lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    for (; i < count; i++)
        lane[0] = x[i] > lane[0] ? x[i] : lane[0];
    for (int half = MS_CPU_MANY_LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] = lane[j + half] > lane[j] ? lane[j + half] : lane[j];
    return lane[0];
}

#endif
