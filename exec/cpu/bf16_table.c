/* The table of CPU kernels on arrays in bf16 or fp32: a kernel computes in fp32, on copies
 * of its bf16 operands, and its bf16 results are rounded to the nearest. Operands in fp32,
 * such as statistics and gradients of weights, are used as they are, but weights of a
 * program in bf16 as if they were stored in bf16. */
#include "exec/cpu/cpu.h"
#include "exec/cpu/quantized_product.h"

#include <string.h>

/* ---- conversions ---- */

MS_WIDE static void widen(float *restrict to, const uint16_t *restrict from, long count)
{
    for (long i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)from[i] << 16;
        memcpy(&to[i], &bits, sizeof bits);
    }
}

/* Rounds as ms_bf16_of does. */
MS_WIDE static void narrow(uint16_t *restrict to, const float *restrict from, long count)
{
    for (long i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &from[i], sizeof bits);
        uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
        uint32_t nan = bits >> 16 | 0x40U;
        to[i] = (uint16_t)((bits & 0x7fffffffU) > 0x7f800000U ? nan : rounded);
    }
}

/* ---- kernels ---- */

/* An fp32 copy of a bf16 array, which a kernel has instead; without its values if the
 * kernel only writes it. Other arrays stay. */
static ms_local wide_local(ms_arena *arena, const ms_local *x, bool is_read)
{
    ms_local wide = *x;
    if (x->scalar != MS_SCALAR_BF16)
        return wide;
    wide.scalar = MS_SCALAR_FP32;
    if (x->data == NULL)
        return wide;
    wide.data = MS_TAKE_ARRAY(arena, x->count, float);
    if (is_read)
        widen(wide.data, x->data, x->count);
    return wide;
}

static bool is_wide_weight(const ms_op_call *call, int operand)
{
    const ms_program *program = call->program;
    const double bf16_bytes = 2.0;
    return program->tensors[call->node->in[operand]].role == MS_ROLE_WEIGHT &&
           call->in[operand]->scalar == MS_SCALAR_FP32 &&
           program->compute_bytes == bf16_bytes;
}

static ms_local rounded_local(ms_arena *arena, const ms_local *x)
{
    uint16_t *narrowed = MS_TAKE_ARRAY(arena, x->count, uint16_t);
    narrow(narrowed, x->data, x->count);
    ms_local rounded = *x;
    rounded.scalar = MS_SCALAR_BF16;
    rounded.data = narrowed;
    return wide_local(arena, &rounded, true);
}

static bool is_only_fp32(const ms_op_call *call)
{
    bool is_only = true;
    for (int i = 0; i < call->node->num_in; i++)
        is_only =
            is_only && call->in[i]->scalar != MS_SCALAR_BF16 && !is_wide_weight(call, i);
    for (int i = 0; i < call->node->num_out; i++)
        is_only = is_only && call->out[i]->scalar != MS_SCALAR_BF16;
    return is_only;
}

static void run_widened(ms_kernel *kernel, const ms_op_call *call)
{
    ms_arena *arena = ms_arena_open();
    ms_op_call wide = *call;
    ms_local in[MS_MAX_OPERANDS], out[MS_MAX_OPERANDS];
    for (int i = 0; i < call->node->num_in; i++) {
        in[i] = is_wide_weight(call, i) ? rounded_local(arena, call->in[i])
                                        : wide_local(arena, call->in[i], true);
        wide.in[i] = &in[i];
    }
    for (int i = 0; i < call->node->num_out; i++) {
        out[i] = wide_local(arena, call->out[i], ms_op_is_added(call, i));
        wide.out[i] = &out[i];
    }
    ms_quantize_operands(&wide);
    kernel(&wide);
    for (int i = 0; i < call->node->num_out; i++)
        if (call->out[i]->scalar == MS_SCALAR_BF16 && call->out[i]->data != NULL)
            narrow(call->out[i]->data, out[i].data, out[i].count);
    ms_arena_close(arena);
}

static void widened(const ms_op_call *call)
{
    ms_kernel *kernel = ms_cpu_table_fp32.op[call->node->op];
    if (is_only_fp32(call))
        kernel(call);
    else
        run_widened(kernel, call);
}

/* Results of attention to a block are sums, which are in fp32. */
static void widened_block(const ms_attention_block *block, void *workspace)
{
    ms_arena *arena = ms_arena_open();
    ms_attention_block wide = *block;
    ms_local q = wide_local(arena, block->q, true), k = wide_local(arena, block->k, true),
             v = wide_local(arena, block->v, true);
    wide.q = &q;
    wide.k = &k;
    wide.v = &v;
    ms_cpu_table_fp32.attention_block(&wide, workspace);
    ms_arena_close(arena);
}

static void widened_block_grad(const ms_attention_block *block, void *workspace)
{
    ms_arena *arena = ms_arena_open();
    ms_attention_block wide = *block;
    ms_local q = wide_local(arena, block->q, true), k = wide_local(arena, block->k, true),
             v = wide_local(arena, block->v, true), o = wide_local(arena, block->o, true),
             go = wide_local(arena, block->go, true);
    wide.q = &q;
    wide.k = &k;
    wide.v = &v;
    wide.o = &o;
    wide.go = &go;
    ms_cpu_table_fp32.attention_block_grad(&wide, workspace);
    ms_arena_close(arena);
}

static size_t workspace_bytes(const ms_program *program, const ms_node *node)
{
    return ms_cpu_table_fp32.workspace_bytes(program, node);
}

/* ---- element-wise functions ---- */

#define AT_ONCE 1024

typedef void combination(void *to, const void *from, long count);

/* Combines elements in fp32 and rounds each result. */
static void combine(combination *act, uint16_t *to, const uint16_t *from, long count)
{
    float x[AT_ONCE], y[AT_ONCE];
    for (long done = 0, num; done < count; done += num) {
        num = ms_cpu_smaller(count - done, AT_ONCE);
        widen(x, to + done, num);
        widen(y, from + done, num);
        act(x, y, num);
        narrow(to + done, x, num);
    }
}

static void add(void *to, const void *from, long count)
{
    combine(ms_cpu_table_fp32.add, to, from, count);
}

static void maximum(void *to, const void *from, long count)
{
    combine(ms_cpu_table_fp32.maximum, to, from, count);
}

static void scale(void *x, double factor, long count)
{
    uint16_t *values = x;
    for (long i = 0; i < count; i++)
        values[i] = ms_bf16_of(ms_bf16_value(values[i]) * factor);
}

static void fill(void *x, double value, long count)
{
    uint16_t *values = x, with = ms_bf16_of(value);
    for (long i = 0; i < count; i++)
        values[i] = with;
}

static double sum_of_squares(const void *x, long count)
{
    const uint16_t *values = x;
    float wide[AT_ONCE];
    double sum = 0.0;
    for (long done = 0, num; done < count; done += num) {
        num = ms_cpu_smaller(count - done, AT_ONCE);
        widen(wide, values + done, num);
        sum += ms_cpu_table_fp32.sum_of_squares(wide, num);
    }
    return sum;
}

static void from_double(void *to, const double *from, long count)
{
    uint16_t *values = to;
    for (long i = 0; i < count; i++)
        values[i] = ms_bf16_of(from[i]);
}

static void to_double(double *to, const void *from, long count)
{
    const uint16_t *values = from;
    for (long i = 0; i < count; i++)
        to[i] = ms_bf16_value(values[i]);
}

ms_kernels ms_cpu_table_bf16 = {.type = MS_REAL_BF16,
                                .real_bytes = sizeof(uint16_t),
                                .attention_block = widened_block,
                                .attention_block_grad = widened_block_grad,
                                .workspace_bytes = workspace_bytes,
                                .add = add,
                                .maximum = maximum,
                                .scale = scale,
                                .fill = fill,
                                .sum_of_squares = sum_of_squares,
                                .from_double = from_double,
                                .to_double = to_double};

void ms_cpu_prepare_bf16(void)
{
    for (int op = 0; op < MS_NUM_OPS; op++)
        ms_cpu_table_bf16.op[op] = ms_cpu_table_fp32.op[op] != NULL ? widened : NULL;
}
