/* Fuzzes the readers of model files: meshsim's own format, Hugging Face configs and the
 * index of a checkpoint. An accepted model must pass the checks, its parameters are counted, and it is
 * printed as a page and as JSON. */
#include "costmodel/model/model_hub.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const ms_model *model)
{
    static FILE *sink;
    if (sink == NULL)
        sink = fopen("/dev/null", "w");
    if (sink == NULL)
        abort();
    ms_param_counts params = ms_model_params(model);
    if (!(params.active > 0.0 && params.active <= params.total))
        abort();
    ms_flop_per_token flop = ms_model_flop_per_token(model, 8192.0);
    if (!(flop.causal_flop <= flop.full_flop))
        abort();
    ms_model_print(sink, model, 8192.0);
    ms_jout out = ms_jout_open(sink);
    ms_model_write_json(&out, model, 8192.0);
    ms_jout_close(&out);
}

static void use_index(ms_ctx *cx, ms_jval root)
{
    double num_params;
    int before = cx->num_errors;
    ms_status status = ms_model_index_params(cx, root, 2.0, &num_params);
    if ((status == MS_OK) != (cx->num_errors == before) || num_params < 0.0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_jdoc *doc = NULL;
    ms_jval root;
    if (ms_json_parse_python(&cx, "fuzz", (const char *)data, size, &doc, &root) ==
        MS_OK) {
        ms_model *model = MS_NEW(cx.arena, ms_model);
        if (ms_model_read(&cx, root, "fuzz", model) == MS_OK)
            use(model);
        else if (cx.num_errors == 0)
            abort();
        use_index(&cx, root);
        ms_json_close(doc);
    }
    ms_arena_close(cx.arena);
    return 0;
}
