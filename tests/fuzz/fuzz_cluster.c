/* Fuzzes the readers of cluster, profile and stack files. A file that is accepted must
 * be usable: collectives on its groups have finite times, kernels have prices, and the
 * cluster prints. */
#include "costmodel/cost/collective_cost.h"
#include "costmodel/cost/kernel_cost.h"
#include "topo/fabric.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The shipped cluster, profile and stack that the fuzzer's document is combined with,
 * read once. */
typedef struct parts {
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
} parts;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const parts *shipped_parts(void)
{
    static ms_ctx cx;
    static parts made;
    if (cx.arena != NULL)
        return &made;
    cx.arena = ms_arena_open();
    if (ms_cluster_load(&cx, "hgx-h100", &made.cluster) != MS_OK ||
        ms_profile_load(&cx, "h100-sxm", &made.profile) != MS_OK ||
        ms_stack_load(&cx, "generic", &made.stack) != MS_OK) {
        ms_diag_print(&cx, stderr);
        abort();
    }
    return &made;
}

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void price_collectives(const ms_cluster *cluster, const ms_profile *profile)
{
    for (long ranks = 1; ranks <= 64; ranks *= 4) {
        ms_mesh mesh = ms_mesh_make((const char *const[]){"a", "b", "c"},
                                    (const long[]){2, ranks, 3}, 3);
        ms_group group = ms_mesh_group(&mesh, (const int[]){1}, 1);
        ms_span span = ms_group_span(&group, mesh.num_ranks, cluster);
        for (int kind = 0; kind < MS_NUM_COLLECTIVES; kind++) {
            ms_collective_law law =
                ms_collective_law_make((ms_collective)kind, &span, cluster, profile);
            double time_s = ms_collective_s(&law, 1e6);
            require(isfinite(time_s) && time_s >= 0.0);
        }
    }
}

static void price(ms_ctx *cx, const ms_cluster *cluster, const ms_profile *profile,
                  const ms_stack *stack)
{
    for (int dtype = 0; dtype < MS_NUM_DTYPES; dtype++) {
        ms_pricer pricer;
        if (ms_pricer_make(cx, cluster, profile, stack, (ms_dtype)dtype, &pricer) !=
            MS_OK)
            continue;
        ms_gemm_shape product = {.batch = 1,
                                 .m = 100,
                                 .n = 200,
                                 .k = 300,
                                 .element_bytes = 2,
                                 .result_bytes = 2};
        require(isfinite(ms_gemm_s(&pricer, product)));
        ms_attention_shape attention = {
            .flop = 1e9, .key_tokens = 100, .head_dim = 80, .score_elements = 1e4};
        require(isfinite(ms_attention_s(&pricer, attention)));
        price_collectives(cluster, profile);
    }
}

/* Routes messages between a few GPUs of an accepted cluster; the link indices must
 * stay within bounds. */
static void route(ms_ctx *cx, const ms_cluster *cluster)
{
    long num_gpus =
        cluster->max_gpus > 0 && cluster->max_gpus < 200 ? cluster->max_gpus : 200;
    const ms_fabric *fabric = ms_fabric_make(cx->arena, cluster, num_gpus, NULL);
    for (long from = 0; from < num_gpus; from += 23)
        for (long to = 0; to < num_gpus; to += 7) {
            int links[MS_MAX_ROUTE];
            int num = ms_fabric_route(fabric, from, to, links);
            require(num <= MS_MAX_ROUTE && (num > 0) == (from != to));
            for (int i = 0; i < num; i++)
                require(links[i] >= 0 && links[i] < fabric->num_links);
        }
}

static void read_all(ms_ctx *cx, ms_jval root, FILE *sink)
{
    const parts *shipped = shipped_parts();
    ms_cluster cluster;
    ms_profile profile;
    ms_stack stack;
    if (ms_cluster_read(cx, root, &cluster) == MS_OK) {
        ms_cluster_print(sink, &cluster);
        ms_jout out = ms_jout_open(sink);
        ms_cluster_write_json(&out, &cluster);
        ms_jout_close(&out);
        price(cx, &cluster, shipped->profile, shipped->stack);
        route(cx, &cluster);
    }
    if (ms_profile_read(cx, root, &profile) == MS_OK)
        price(cx, shipped->cluster, &profile, shipped->stack);
    if (ms_stack_read(cx, root, &stack) == MS_OK)
        price(cx, shipped->cluster, shipped->profile, &stack);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    FILE *sink = fopen("/dev/null", "w");
    require(sink != NULL);
    ms_jdoc *doc;
    ms_jval root;
    if (ms_json_parse(&cx, "fuzz", (const char *)data, size, &doc, &root) == MS_OK) {
        read_all(&cx, root, sink);
        ms_json_close(doc);
    }
    ms_diag_print(&cx, sink);
    fclose(sink);
    ms_arena_close(cx.arena);
    return 0;
}
