#include "costmodel/cost/update_cost.h"

#include "base/number.h"

#include <string.h>

static double product_of(const ms_program *program, int tensor, const char *letters,
                         size_t num)
{
    double product = 1.0;
    for (size_t i = 0; i < num; i++)
        product *= ms_tensor_local_size(program, tensor, letters[i]);
    return product;
}

/* Inner widths of a layer, over which projections contract. */
static bool is_width(char letter)
{
    return letter == MS_DIM_HIDDEN || letter == MS_DIM_TWICE_HIDDEN ||
           letter == MS_DIM_Q_LORA || letter == MS_DIM_KV_LORA;
}

/* Embeddings and the output head. */
static bool is_table(const ms_program *program, int tensor)
{
    const char *dims = program->tensors[tensor].dims;
    return strchr(dims, MS_DIM_VOCAB) != NULL || strchr(dims, MS_DIM_POSITIONS) != NULL;
}

ms_matrices ms_matrices_of(const ms_program *program, int tensor, bool has_tables)
{
    const char *dims = program->tensors[tensor].dims;
    ms_matrices out = {.count = 1.0};
    if (!has_tables && is_table(program, tensor))
        return (ms_matrices){0};
    if (dims[0] == MS_DIM_EXPERTS) {
        out.count = ms_tensor_local_size(program, tensor, MS_DIM_EXPERTS);
        dims++;
    }
    size_t num = strlen(dims);
    if (num < 2 || !(is_width(dims[0]) || is_width(dims[num - 1])))
        return (ms_matrices){0};
    out.num_row_dims = is_width(dims[0]) ? 1 : num - 1;
    out.rows = product_of(program, tensor, dims, out.num_row_dims);
    out.columns =
        product_of(program, tensor, dims + out.num_row_dims, num - out.num_row_dims);
    return out;
}

static double orthogonalize_s(const ms_pricer *pricer, ms_matrices of)
{
    const ms_pricer half = ms_pricer_in(pricer, MS_BF16);
    double m = ms_min(of.rows, of.columns), n = ms_max(of.rows, of.columns);
    const double sizes[3][3] = {{m, m, n}, {m, m, m}, {m, n, m}};
    double seconds = 0.0;
    for (int i = 0; i < 3; i++) {
        ms_gemm_shape shape = {of.count, sizes[i][0], sizes[i][1], sizes[i][2], 2.0, 2.0};
        seconds += ms_gemm_s(&half, shape);
    }
    return pricer->stack->orthogonal_iterations * seconds;
}

bool ms_stack_updates_matrices(const ms_stack *stack)
{
    return stack->orthogonal_iterations > 0.0 || stack->vector_moment_bytes > 0.0;
}

void ms_update_cost_add(const ms_program *program, int tensor, const ms_pricer *pricer,
                        ms_update_cost *out)
{
    const ms_stack *stack = pricer->stack;
    int expert = program->tensors[tensor].mesh == MS_SPARSE_MESH;
    double elements = ms_tensor_local_elements(program, tensor);
    ms_matrices of = ms_matrices_of(program, tensor, stack->orthogonal_iterations == 0.0);
    if (of.count == 0.0) {
        out->state_bytes[expert] += stack->vector_moment_bytes * elements;
        out->update_s[expert] +=
            ms_stream_s(pricer, stack->vector_optimizer_bytes * elements);
        return;
    }
    out->state_bytes[expert] += stack->factored_bytes * of.count * (of.rows + of.columns);
    if (stack->orthogonal_iterations == 0.0)
        return;
    double seconds = orthogonalize_s(pricer, of);
    out->update_s[expert] += seconds;
    out->longest_s = ms_max(out->longest_s, seconds / of.count);
    out->matrix_params[expert] += elements;
}

void ms_update_cost_drop(const ms_pricer *pricer, double num_params, double width,
                         ms_update_cost *out)
{
    const ms_stack *stack = pricer->stack;
    if (num_params == 0.0)
        return;
    if (stack->orthogonal_iterations == 0.0) {
        out->state_bytes[0] -= stack->factored_bytes * (num_params / width + width);
        return;
    }
    out->state_bytes[0] -= stack->vector_moment_bytes * num_params;
    out->update_s[0] -= ms_stream_s(pricer, stack->vector_optimizer_bytes * num_params);
}

void ms_update_cost_sum(ms_update_cost *to, const ms_update_cost *update, double count)
{
    for (int i = 0; i < 2; i++) {
        to->state_bytes[i] += count * update->state_bytes[i];
        to->update_s[i] += count * update->update_s[i];
        to->matrix_params[i] += count * update->matrix_params[i];
    }
    to->longest_s = ms_max(to->longest_s, update->longest_s);
}
