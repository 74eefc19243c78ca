/* The index of a sharded checkpoint as a check of the parameters counted from its config. */
#include "base/paths.h"
#include "costmodel/model/model_hub.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define INDEX_NAME     "model.safetensors.index.json"
#define SAME_FRAC      0.001 /* buffers that older checkpoints keep are smaller */
#define LEAST_RATIO    0.9
#define MOST_RATIO     2.2 /* towers for images and weights kept in fp32 are within */
#define MAX_INDEX_SIZE 9007199254740992.0

/* Bytes of a weight by "dtype", formerly "torch_dtype"; 0: not said, or another type. */
static double dtype_bytes(ms_ctx *cx, ms_jval config)
{
    static const struct {
        const char *name;
        double bytes;
    } types[] = {{"bfloat16", 2.0}, {"float16", 2.0}, {"float32", 4.0}};
    ms_jval value, text;
    const char *name = "";
    if (!ms_json_member(cx, config, "dtype", &value) &&
        !ms_json_member(cx, config, "torch_dtype", &value)) {
        if (!ms_json_member(cx, config, "text_config", &text) ||
            (!ms_json_member(cx, text, "dtype", &value) &&
             !ms_json_member(cx, text, "torch_dtype", &value)))
            return 0.0;
    }
    if (!ms_json_is_string(value) || ms_json_text(cx, value, &name) != MS_OK)
        return 0.0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(name, types[i].name) == 0)
            return types[i].bytes;
    return 0.0;
}

ms_status ms_model_index_params(ms_ctx *cx, ms_jval root, double weight_bytes,
                                double *num_params)
{
    ms_jval metadata, value;
    double total_bytes;
    *num_params = 0.0;
    if (!ms_json_is_object(root))
        return ms_json_fail(cx, root, "the index of a checkpoint is an object");
    if (!ms_json_member(cx, root, "metadata", &metadata))
        return MS_OK;
    if (ms_json_member(cx, metadata, "total_parameters", &value))
        return ms_json_number(cx, value, 1.0, MAX_INDEX_SIZE, num_params);
    if (weight_bytes <= 0.0 || !ms_json_member(cx, metadata, "total_size", &value))
        return MS_OK;
    MS_TRY(ms_json_number(cx, value, 1.0, MAX_INDEX_SIZE, &total_bytes));
    *num_params = total_bytes / weight_bytes;
    return MS_OK;
}

/* The likely reason for a checkpoint that has `ratio` times the counted parameters. */
static const char *explain(double ratio)
{
    if (fabs(ratio - 0.5) <= 0.5 * SAME_FRAC || fabs(ratio - 2.0) <= 2.0 * SAME_FRAC)
        return "weights of another type than the config's dtype would explain it";
    if (ratio < LEAST_RATIO || ratio > MOST_RATIO)
        return "one of the two files is of another model, or the config was changed";
    return "other weights there, as of images, prediction of several tokens or copies of "
           "tied ones, may explain it";
}

static void compare(ms_ctx *cx, const char *path, double num_params, ms_model *model)
{
    double counted = ms_model_params(model).total, ratio = num_params / counted;
    if (fabs(ratio - 1.0) > SAME_FRAC)
        model->checkpoint_note = ms_arena_printf(
            cx->arena, "%s: the checkpoint has %.5g parameters, the model %.5g; %s", path,
            num_params, counted, explain(ratio));
}

ms_status ms_model_check_index(ms_ctx *cx, const char *path, ms_jval config,
                               ms_model *model)
{
    struct stat info;
    ms_jval root, quantized;
    ms_jdoc *doc = NULL;
    double num_params;
    const char *index = ms_arena_printf(cx->arena, "%.*s" INDEX_NAME,
                                        (int)(ms_path_name(path) - path), path);
    bool is_quantized = ms_json_member(cx, config, "quantization_config", &quantized) &&
                        !ms_json_is_null(quantized);
    if (is_quantized || strcmp(ms_path_name(path), "config.json") != 0 ||
        stat(index, &info) != 0)
        return MS_OK;
    MS_TRY(ms_json_load(cx, index, &doc, &root));
    ms_status status =
        ms_model_index_params(cx, root, dtype_bytes(cx, config), &num_params);
    ms_json_close(doc);
    if (status != MS_OK || num_params <= 0.0)
        return status;
    compare(cx, index, num_params, model);
    return MS_OK;
}
