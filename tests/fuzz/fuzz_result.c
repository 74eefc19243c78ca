/* Fuzzes the reader of results that compare takes. Kinds of nodes of a trace share its
 * step: their seconds sum to no more than it. */
#include "sim/result/result_file.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_kineto(ms_ctx *cx, ms_jval root, const ms_result *result)
{
    ms_jval unused;
    double sum_s = 0.0;
    if (result->kind != MS_RESULT_TRACE || ms_json_member(cx, root, "otherData", &unused))
        return;
    for (int i = 0; i < result->num_nodes; i++)
        sum_s += result->nodes[i].seconds;
    require(sum_s <= result->step_s * (1.0 + 1e-6));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open(), .verbosity = -1};
    ms_results results = {0};
    ms_jdoc *doc = NULL;
    ms_jval root;
    ms_status status = ms_json_parse(&cx, "fuzz", (const char *)data, size, &doc, &root);
    if (status == MS_OK)
        status = ms_results_add(&cx, root, "fuzz", &results);
    require((status == MS_OK) == (cx.num_errors == 0));
    if (status == MS_OK)
        check_kineto(&cx, root, &results.items[0]);
    ms_json_close(doc);
    ms_arena_close(cx.arena);
    return 0;
}
