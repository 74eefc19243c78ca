/* Fuzzes the reader of plan files: nothing crashes, and an accepted plan is written and
 * reads back as the same plan. If the rules for plans do not refuse an accepted plan, its
 * mesh has as many ranks as the plan has GPUs. */
#include "costmodel/plan/plan.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ms_model model = {.num_layers = 80,
                               .num_heads = 64,
                               .num_kv_heads = 8,
                               .ffn_hidden = 28672,
                               .vocab = 128256,
                               .num_kinds = 2,
                               .kinds = {{.moe = false}, {.moe = true}},
                               .moe = {.num_experts = 256, .ffn_hidden = 2048}};

static ms_status read_bytes(ms_ctx *cx, const char *text, size_t size, ms_plan *out)
{
    ms_jdoc *doc;
    ms_jval root;
    ms_status status = ms_json_parse(cx, "fuzz", text, size, &doc, &root);
    if (status != MS_OK)
        return status;
    status = ms_plan_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void write_and_read_back(ms_ctx *cx, const ms_plan *plan)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    require(file != NULL);
    ms_jout out = ms_jout_open(file);
    ms_plan_write_json(&out, plan);
    ms_jout_close(&out);
    fclose(file);
    ms_plan again;
    require(read_bytes(cx, text, size, &again) == MS_OK);
    require(ms_plan_equal(plan, &again));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_arena *arena = ms_arena_open();
    ms_ctx cx = {.arena = arena};
    ms_plan plan;
    if (read_bytes(&cx, (const char *)data, size, &plan) == MS_OK) {
        write_and_read_back(&cx, &plan);
        ms_plan_text(arena, &plan);
        ms_status status = ms_plan_check(&cx, &plan, &model, MS_NOWHERE);
        require((status == MS_OK) == (ms_plan_refusal(&plan, &model) == MS_LEGAL));
        if (status == MS_OK) {
            require(ms_plan_mesh(&plan).num_ranks == plan.gpus);
            require(ms_plan_expert_mesh(&plan).num_ranks == plan.gpus);
        }
    } else {
        require(cx.num_errors > 0);
    }
    ms_arena_close(arena);
    return 0;
}
