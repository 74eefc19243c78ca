/* Loads PyTorch's results for the small models, and compares files of tensors by name. */
#include "tests/support/torch_oracle.h"

#include <math.h>
#include <string.h>

const char *const ms_torch_models[] = {"tiny-llama", "tiny-mixtral", "tiny-gpt2", NULL};
const ms_initial ms_torch_initial = {
    .seed = MS_TORCH_SEED, .deviation = 0.2, .spread = 0.1};

static const char *path_of(ms_ctx *cx, const char *name, const char *what)
{
    return ms_arena_printf(cx->arena, "tests/data/run/%s.%s", name, what);
}

/* Reads a scalar tensor of a file and removes it from the file. */
static ms_status take_scalar(ms_ctx *cx, ms_safe_file *file, const char *name,
                             double *out)
{
    const ms_safe_tensor *scalar = ms_safe_find(file, name);
    if (scalar == NULL || scalar->count != 1)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the oracle has no %s", name);
    *out = scalar->values[0];
    long at = scalar - file->tensors;
    file->num_tensors--;
    memmove(&file->tensors[at], &file->tensors[at + 1],
            (size_t)(file->num_tensors - at) * sizeof *file->tensors);
    return MS_OK;
}

ms_status ms_torch_oracle_load(ms_ctx *cx, const char *name, ms_torch_oracle *out)
{
    out->model_path = path_of(cx, name, "json");
    MS_TRY(ms_model_load(cx, out->model_path, &out->model));
    MS_TRY(
        ms_safetensors_load(cx, path_of(cx, name, "weights.safetensors"), &out->weights));
    MS_TRY(ms_safetensors_load(cx, path_of(cx, name, "batch.safetensors"), &out->batch));
    MS_TRY(ms_safetensors_load(cx, path_of(cx, name, "gradients.safetensors"),
                               &out->gradients));
    MS_TRY(take_scalar(cx, &out->gradients, "loss", &out->loss));
    return take_scalar(cx, &out->gradients, "loss_fp32", &out->loss_fp32);
}

ms_tokens ms_torch_tokens(const ms_torch_oracle *oracle)
{
    return (ms_tokens){.seed = MS_TORCH_SEED,
                       .vocab = oracle->model->vocab,
                       .sequence_length = MS_TORCH_SEQUENCE,
                       .global_batch = MS_TORCH_BATCH};
}

static double largest_of(const ms_safe_tensor *tensor)
{
    double largest = 0.0;
    for (long i = 0; i < tensor->count; i++)
        largest = fmax(largest, fabs(tensor->values[i]));
    return largest;
}

/* Share of the largest element of all tensors below which a tensor's are rounding errors
 * of 0: a bias of all keys does not change attention without rotary positions. */
#define ROUNDING_FRAC 1e-12

static double difference(const ms_safe_tensor *got, const ms_safe_tensor *want,
                         double largest_of_all)
{
    double most = 0.0, largest = largest_of(want);
    if (got == NULL || got->num_dims != want->num_dims ||
        memcmp(got->shape, want->shape, sizeof got->shape) != 0)
        return INFINITY;
    for (long i = 0; i < want->count; i++) {
        double off = fabs(got->values[i] - want->values[i]);
        if (!isfinite(off))
            return INFINITY;
        most = fmax(most, off);
    }
    if (largest < ROUNDING_FRAC * largest_of_all)
        largest = largest_of_all;
    return most == 0.0 ? 0.0 : most / largest;
}

double ms_torch_difference(const ms_safe_file *got, const ms_safe_file *want,
                           const char **worst)
{
    double most = 0.0, largest = 0.0;
    *worst = "";
    for (int i = 0; i < want->num_tensors; i++)
        largest = fmax(largest, largest_of(&want->tensors[i]));
    for (int i = 0; i < got->num_tensors; i++) {
        if (ms_safe_find(want, got->tensors[i].name) != NULL)
            continue;
        *worst = got->tensors[i].name;
        return INFINITY;
    }
    for (int i = 0; i < want->num_tensors; i++) {
        const ms_safe_tensor *tensor = &want->tensors[i];
        double off = difference(ms_safe_find(got, tensor->name), tensor, largest);
        if (off <= most)
            continue;
        most = off;
        *worst = tensor->name;
    }
    return most;
}
