#include "exec/runner/loaded_weights.h"

#include "exec/runner/whole_weights.h"

#include <string.h>

/* Whether a tensor is an adapter's: "….lora_a.weight", or "….lora_A.weight" of others. */
static bool is_adapter(const ms_safe_tensor *tensor)
{
    return strstr(tensor->name, ".lora_") != NULL;
}

/* Counts the tensors that no weight of the model reads; refuses adapters. */
static ms_status check_unread(ms_ctx *cx, const ms_safe_file *file,
                              const ms_safe_file *weights, ms_loaded_weights *loaded)
{
    for (int i = 0; i < file->num_tensors; i++) {
        const ms_safe_tensor *tensor = &file->tensors[i];
        if (ms_safe_find_sorted(weights, tensor->name) != NULL)
            continue;
        if (is_adapter(tensor)) {
            ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                    "the weights have the adapter \"%s\", which the run does not train",
                    tensor->name);
            return ms_hint(cx, "--lora-rank and --lora-targets of the run that saved it, "
                               "or weights without adapters");
        }
        if (loaded->num_unread++ == 0)
            loaded->first_unread = tensor->name;
    }
    return MS_OK;
}

/* Sets `missing` to the adapters that the file lacks, and returns their number. */
static int find_missing(const ms_safe_file *file, const ms_safe_file *weights,
                        ms_safe_tensor *missing, int *num_adapters)
{
    int num = 0;
    *num_adapters = 0;
    for (int i = 0; i < weights->num_tensors; i++) {
        if (!is_adapter(&weights->tensors[i]))
            continue;
        ++*num_adapters;
        if (ms_safe_find(file, weights->tensors[i].name) == NULL)
            missing[num++] = weights->tensors[i];
    }
    return num;
}

static void draw_adapter(ms_arena *arena, const ms_initial *initial,
                         ms_safe_tensor *tensor)
{
    bool is_a = strstr(tensor->name, ".lora_a.") != NULL;
    uint64_t key = ms_initial_key(initial, tensor->name);
    double *values = MS_NEW_ARRAY(arena, tensor->count, double);
    for (long i = 0; i < tensor->count && is_a; i++)
        values[i] = ms_initial_value(initial, key, i, false, false);
    tensor->values = values;
}

ms_status ms_loaded_weights_make(ms_ctx *cx, const ms_job *job, ms_outcome *outcome,
                                 const ms_safe_file **out)
{
    const ms_safe_file *file = job->options->load;
    ms_loaded_weights *loaded = &outcome->loaded;
    *out = file;
    if (file == NULL || !job->backend->backend->has_values)
        return MS_OK;
    ms_safe_file weights = ms_job_weights(cx, job);
    MS_TRY(check_unread(cx, file, &weights, loaded));
    ms_safe_tensor *tensors =
        MS_NEW_ARRAY(cx->arena, file->num_tensors + weights.num_tensors, ms_safe_tensor);
    ms_safe_tensor *missing = tensors + file->num_tensors;
    int num_adapters, num = find_missing(file, &weights, missing, &num_adapters);
    if (num == 0)
        return MS_OK;
    if (num < num_adapters) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "the weights have %d of the run's %d tensors of adapters, and no \"%s\"",
                num_adapters - num, num_adapters, missing->name);
        return ms_hint(cx, "a file has all of them, or none to start from a base");
    }
    memcpy(tensors, file->tensors, (size_t)file->num_tensors * sizeof *tensors);
    for (int i = 0; i < num; i++)
        draw_adapter(cx->arena, &job->options->initial, &missing[i]);
    ms_safe_file *whole = MS_NEW(cx->arena, ms_safe_file);
    *whole = (ms_safe_file){file->num_tensors + num, tensors};
    loaded->num_drawn = num;
    *out = whole;
    return MS_OK;
}
