/* Converts words in rows of measured kernels, "gemm_NT_accT_fp32", "attn_fwdbwd_fa2",
 * "h64kv8", "192/128", to shapes, and predicts the times of these kernels. */
#include "sim/validate/kernel_rows_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

static bool begins(const char *text, const char *part)
{
    return strncmp(text, part, strlen(part)) == 0;
}

/* Reads a whole number above 0 at *text and moves *text past it. */
static bool take_count(const char **text, double *out)
{
    const double most = 16777216.0;
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *out = strtod(*text, &end);
    *text = end;
    return *out >= 1.0 && *out <= most && *out == floor(*out);
}

static bool read_count(const char *text, double *out)
{
    return text != NULL && take_count(&text, out) && *text == '\0';
}

/* Reads an operand type, bf16 if not stated; fp16 runs at the same rates. */
static bool read_dtype(const char *text, ms_dtype *out)
{
    static const char *const words[] = {"bf16", "fp16", "fp8", "mxfp8", "nvfp4", NULL};
    static const ms_dtype dtypes[] = {MS_BF16, MS_BF16, MS_FP8, MS_FP8, MS_FP4};
    int found = text == NULL ? 0 : ms_choice_find(text, words);
    if (found >= 0)
        *out = dtypes[found];
    return found >= 0;
}

/* ---- GEMMs ---- */

/* Memory traffic per element of an fp32 accumulation, bytes: read and written. */
static const double fp32_sum_bytes = 8.0;

static double result_bytes(const char *op)
{
    if (has(op, "accT_fp32"))
        return fp32_sum_bytes;
    return has(op, "accT_bf16") || has(op, "grad_w") ? 4.0 : 2.0;
}

static void set_gradient_shape(ms_gemm_shape *shape, const char *op)
{
    ms_gemm_shape was = *shape;
    if (has(op, "grad_w")) { /* weight gradient: n x m times m x k */
        shape->m = was.n;
        shape->n = was.k;
        shape->k = was.m;
    } else if (has(op, "grad_act")) { /* input gradient: m x n times n x k */
        shape->n = was.k;
        shape->k = was.n;
    }
}

/* Reads a grouped GEMM: "gemm_grouped_g40_fwd" is 40 GEMMs of m rows each, one kernel per
 * GEMM; "contiguous" and "masked" are one kernel for all (DeepGEMM). */
static const char *read_grouped(ms_kernel_row *row)
{
    const char *number = strstr(row->op, "_g");
    while (number != NULL && (number[2] < '0' || number[2] > '9'))
        number = strstr(number + 1, "_g");
    double groups;
    if (number == NULL || (number += 2, !take_count(&number, &groups)))
        return "op: number of groups not stated";
    set_gradient_shape(&row->product, row->op);
    if (has(row->op, "contiguous") || has(row->op, "masked"))
        row->product.batch = groups;
    else
        row->sequence = groups;
    return NULL;
}

static bool same_product(const ms_kernel_row *a, const ms_kernel_row *b)
{
    return b->reason == NULL && !b->is_attention && strcmp(a->op, b->op) == 0 &&
           strcmp(a->gpu, b->gpu) == 0 && strcmp(a->source, b->source) == 0 &&
           a->product.m == b->product.m && a->product.n == b->product.n &&
           a->product.k == b->product.k;
}

/* For weight gradients of grouped GEMMs SimuMax has two rows per shape, one with
 * accumulation in fp32 and one in 16 bits, but does not say which is which. The slower
 * one is taken as fp32; on B200 their times are in proportion to their bytes. */
void ms_kernel_sums_tell(ms_kernel_rows *rows)
{
    for (int i = 0; i < rows->num_rows; i++) {
        ms_kernel_row *row = &rows->rows[i];
        if (row->reason != NULL || row->is_attention || !has(row->op, "grouped") ||
            !has(row->op, "grad_w"))
            continue;
        for (int j = 0; j < rows->num_rows; j++)
            if (same_product(row, &rows->rows[j]) &&
                rows->rows[j].measured_s < row->measured_s)
                row->product.result_bytes = fp32_sum_bytes;
    }
}

static const char *read_product(const ms_kernel_cells *c, ms_kernel_row *row)
{
    double n;
    if (!read_count(c->n, &n) || c->m <= 0 || c->k <= 0)
        return "shape: m, n or k not stated";
    double element_bytes = ms_dtype_bytes(row->dtype);
    row->product = (ms_gemm_shape){1.0,          (double)c->m,  n,
                                   (double)c->k, element_bytes, result_bytes(row->op)};
    row->sequence = 1.0;
    /* TensorRT-LLM's operation includes quantizing a bf16 operand (aiconfigurator
     * collector). */
    row->quantizes = has(row->op, "torch_flow") && element_bytes < 2.0;
    /* time of the best of many shapes (stas00/ml-engineering, mamf-finder.py) */
    row->best_of_many = has(row->op, "mamf");
    if (has(row->op, "grouped")) {
        const char *reason = read_grouped(row);
        if (reason != NULL)
            return reason;
    }
    double flop = 2.0 * row->sequence * row->product.batch * row->product.m *
                  row->product.n * row->product.k;
    row->measured_s = flop / (c->tflops * 1e12);
    return NULL;
}

/* ---- attention ---- */

typedef struct kernel_word {
    const char *part;
    int kernel; /* ms_attention_kernel; -1 if profiles lack its coefficients */
} kernel_word;

/* Attention kernels by words of the operation. TensorRT-LLM's kernels count as cuDNN's
 * (both are NVIDIA's), FlashAttention 4 (for Blackwell) as FlashAttention 3. SimuMax runs
 * Transformer Engine: FlashAttention 2 on Ampere, cuDNN from Hopper on. */
static const kernel_word kernel_words[] = {
    {"not stated", -1},
    {"fa1", -1},
    {"fa2", MS_ATTENTION_FA2},
    {"fa3", MS_ATTENTION_FA3},
    {"fa4", MS_ATTENTION_FA3},
    {"cudnn", MS_ATTENTION_CUDNN},
    {"torch_flow", MS_ATTENTION_CUDNN},
    {"triton", -1}, /* Triton kernel of 2024; profiles have llm-foundry's of 2023 */
    {"pytorch", MS_ATTENTION_UNFUSED},
    {"contig", MS_ATTENTION_CUDNN},
};

static const char *read_kernel(ms_kernel_row *row)
{
    int kernel = MS_ATTENTION_CUDNN;
    for (size_t i = 0; i < sizeof kernel_words / sizeof kernel_words[0]; i++) {
        if (has(row->op, kernel_words[i].part)) {
            kernel = kernel_words[i].kernel;
            break;
        }
    }
    if (kernel < 0)
        return "op: no coefficients for this kernel, or its direction not stated";
    if (row->dtype != MS_BF16)
        return "dtype: attention in fewer than 16 bits is not modelled";
    while (kernel > MS_ATTENTION_UNFUSED &&
           isnan(row->profile->attention[kernel].forward_flop_per_s.value))
        kernel--;
    row->kernel = (ms_attention_kernel)kernel;
    if (begins(row->op, "attn_fwdbwd"))
        row->passes = MS_KERNEL_FORWARD | MS_KERNEL_BACKWARD;
    else if (begins(row->op, "attn_bwd"))
        row->passes = MS_KERNEL_BACKWARD;
    else
        row->passes = MS_KERNEL_FORWARD;
    return NULL;
}

typedef struct head_counts {
    double heads, kv_heads, keys, values; /* numbers of heads; elements per key, value */
} head_counts;

static bool read_heads(const ms_kernel_cells *c, head_counts *out)
{
    const char *at = c->n, *dim = c->head_dim;
    if (at == NULL || dim == NULL || *at++ != 'h' || !take_count(&at, &out->heads) ||
        !take_count(&dim, &out->keys))
        return false;
    out->kv_heads = out->heads;
    out->values = out->keys;
    if (begins(at, "kv") && (at += 2, !take_count(&at, &out->kv_heads)))
        return false;
    if (*dim == '/' && (dim++, !take_count(&dim, &out->values)))
        return false;
    return *at == '\0' && *dim == '\0';
}

/* Reads shape and time of attention. In a measured rate, forward counts 2 FLOP for each
 * query-key pair and element of key and value, and backward 2.5 times as many; causal
 * attention has half of the pairs. */
static const char *read_attention(const ms_kernel_cells *c, ms_kernel_row *row)
{
    head_counts h;
    const char *reason = read_kernel(row);
    if (reason != NULL)
        return reason;
    if (c->causal < 0 || c->causal > 1)
        return "causal: not stated";
    if (!read_heads(c, &h) || c->m <= 0 || c->k <= 0)
        return "shape: batch, heads, head dim or sequence not stated";
    double tokens = (double)c->k, batch = (double)c->m;
    double rows = batch * h.heads * tokens;
    double pairs = rows * tokens * (c->causal == 1 ? 0.5 : 1.0);
    double flop = 2.0 * pairs * (h.keys + h.values);
    row->attention = (ms_attention_shape){
        .flop = flop,
        /* unmasked: a query has all keys, as many as on average in causal attention of
         * twice the length */
        .key_tokens = c->causal == 1 ? tokens : 2.0 * tokens,
        .head_dim = h.keys,
        .score_elements = rows * tokens,
        .traffic_bytes =
            2.0 * batch * tokens * (h.heads + h.kv_heads) * (h.keys + h.values),
        .query_rows = rows,
        .value_dim = h.values,
        .batch = batch * h.heads,
        .score_bytes = c->causal == 1 ? 8.0 : 4.0,
    };
    double passes = (row->passes & MS_KERNEL_FORWARD ? 1.0 : 0.0) +
                    (row->passes & MS_KERNEL_BACKWARD ? 2.5 : 0.0);
    row->measured_s = passes * flop / (c->tflops * 1e12);
    return NULL;
}

const char *ms_kernel_shape_read(const ms_kernel_cells *c, ms_kernel_row *row)
{
    if (!read_dtype(c->dtype, &row->dtype))
        return "dtype: not bf16, fp16, fp8 nor nvfp4";
    row->is_attention = begins(row->op, "attn");
    if (row->is_attention)
        return read_attention(c, row);
    return begins(row->op, "gemm") ? read_product(c, row)
                                   : "op: neither product nor attention";
}

/* ---- times ---- */

ms_status ms_kernel_row_pricer(ms_ctx *cx, const ms_kernel_row *row, ms_pricer *out)
{
    const ms_stack stack = {.name = "kernels", .attention = row->kernel};
    ms_status status =
        ms_pricer_make(cx, row->cluster, row->profile, &stack, row->dtype, out);
    out->stack = NULL; /* no training stack: kernels run in isolation */
    return status;
}

/* Seconds of attention's backward: it recomputes the scores, computes the gradients of
 * scores, queries, keys and values, and moves twice the bytes of forward. */
static double attention_backward_s(const ms_pricer *pricer, ms_attention_shape shape)
{
    double keys = shape.head_dim, values = shape.value_dim;
    shape.flop *= (3.0 * keys + 2.0 * values) / (keys + values);
    shape.traffic_bytes *= 2.0;
    shape.backward = true;
    shape.score_bytes = 6.0;
    return ms_attention_s(pricer, shape);
}

double ms_kernel_row_s(const ms_pricer *pricer, const ms_kernel_row *row)
{
    if (!row->is_attention)
        return row->sequence * (row->quantizes ? ms_quantized_gemm_s(pricer, row->product)
                                               : ms_gemm_kernel_s(pricer, row->product));
    double seconds = 0.0;
    if (row->passes & MS_KERNEL_FORWARD)
        seconds += ms_attention_s(pricer, row->attention);
    if (row->passes & MS_KERNEL_BACKWARD)
        seconds += attention_backward_s(pricer, row->attention);
    return seconds;
}
