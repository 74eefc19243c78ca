/* No kernel or collective is faster than what its device and links are listed with: on
 * every shipped cluster with its profile, in every type that both have, for all attention
 * kernels, at random shapes and sizes. */
#include "base/paths.h"
#include "base/rng.h"
#include "costmodel/cost/collective_cost.h"
#include "costmodel/cost/kernel_cost.h"
#include "tests/test.h"
#include "topo/mesh.h"

/* Rounding. */
#define LEAST (1.0 - 1e-9)

typedef struct machine {
    ms_ctx *cx;
    const ms_cluster *cluster;
    const ms_profile *profile;
    ms_rng rng;
} machine;

static double draw(machine *m, double least, double most)
{
    return round(least * pow(most / least, ms_rng_uniform(&m->rng)));
}

static void too_fast(const machine *m, const char *what, double seconds, double least_s)
{
    fail_msg("%s: %s takes %.6g s, at the listed rate %.6g s", m->cluster->name, what,
             seconds, least_s);
}

/* ---- kernels ---- */

static void check_gemm(machine *m, const ms_pricer *p)
{
    double bytes = ms_dtype_bytes(p->compute);
    ms_gemm_shape g = {
        draw(m, 1, 64), draw(m, 1, 65536), draw(m, 1, 65536), draw(m, 1, 65536), bytes,
        bytes};
    double seconds = ms_gemm_kernel_s(p, g);
    double flop_s =
        2.0 * g.batch * g.m * g.n * g.k / m->cluster->device.peak_flop_per_s[p->compute];
    double hbm_s = g.batch * bytes * (g.k * (g.m + g.n) + g.m * g.n) /
                   m->cluster->device.hbm_bytes_per_s;
    if (seconds < LEAST * fmax(flop_s, hbm_s))
        too_fast(m, ms_dtype_names[p->compute], seconds, fmax(flop_s, hbm_s));
}

/* Attention is in 16 bits if GEMMs are in fewer. */
static double attention_peak(const machine *m, ms_dtype compute)
{
    const double *peaks = m->cluster->device.peak_flop_per_s;
    if (ms_dtype_bytes(compute) >= 2.0)
        return peaks[compute];
    return peaks[peaks[MS_BF16] > 0.0 ? MS_BF16 : MS_FP16];
}

static void check_attention(machine *m, const ms_pricer *p)
{
    double heads = draw(m, 1, 128), tokens = draw(m, 16, 1 << 20);
    double d = draw(m, 16, 512), w = draw(m, 16, 512);
    ms_attention_shape a = {.flop = heads * tokens * tokens * (d + w),
                            .key_tokens = tokens,
                            .head_dim = d,
                            .value_dim = w,
                            .score_elements = heads * tokens * tokens,
                            .traffic_bytes = 4.0 * heads * tokens * (d + w),
                            .query_rows = heads * tokens,
                            .batch = heads,
                            .score_bytes = 3.0};
    for (int backward = 0; backward < 2; backward++) {
        a.backward = backward != 0;
        a.flop *= backward ? 2.0 : 1.0;
        double seconds = ms_attention_s(p, a);
        double flop_s = a.flop / attention_peak(m, p->compute);
        double hbm_s = a.traffic_bytes / m->cluster->device.hbm_bytes_per_s;
        if (seconds < LEAST * flop_s || (p->attention_fused && seconds < LEAST * hbm_s))
            too_fast(m, "attention", seconds, fmax(flop_s, hbm_s));
    }
}

static void check_streams(machine *m, const ms_pricer *p)
{
    double bytes = draw(m, 1, 1e12);
    double hbm_s = bytes / m->cluster->device.hbm_bytes_per_s;
    if (ms_stream_s(p, bytes) < LEAST * hbm_s)
        too_fast(m, "a stream", ms_stream_s(p, bytes), hbm_s);
}

static int check_kernels(machine *m)
{
    int num = 0;
    for (int dtype = 0; dtype < MS_NUM_DTYPES; dtype++) {
        for (int kernel = 0; kernel < MS_NUM_ATTENTION_KERNELS; kernel++) {
            ms_ctx quiet = {.arena = m->cx->arena};
            ms_stack stack = {.attention = (ms_attention_kernel)kernel};
            ms_pricer pricer;
            if (ms_pricer_make(&quiet, m->cluster, m->profile, &stack, (ms_dtype)dtype,
                               &pricer) != MS_OK)
                continue;
            num++;
            for (int i = 0; i < TEST_CASES(100, 10); i++) {
                check_gemm(m, &pricer);
                check_attention(m, &pricer);
                check_streams(m, &pricer);
            }
        }
    }
    return num;
}

/* ---- collectives ---- */

/* Seconds in which a rank's own link, or the NICs of a domain's ranks, carry what every
 * algorithm sends at least: S bytes but for the own share of the rank, or domain (in an
 * all-to-all S is what one rank holds). Rings of all-reduces send twice that. */
static double least_s(const machine *m, const ms_span *span, ms_collective c,
                      double bytes)
{
    const ms_level *levels = m->cluster->levels;
    double n = (double)span->size, p = (double)span->per_domain[0];
    if (c == MS_SEND)
        return bytes / levels[span->tier].bandwidth_bytes_per_s;
    if (span->tier == 0)
        return bytes * (n - 1.0) / n / levels[0].bandwidth_bytes_per_s;
    double nic = levels[1].bandwidth_bytes_per_s;
    for (int i = 1; i <= span->tier; i++)
        nic = fmin(nic, levels[i].bandwidth_bytes_per_s / levels[i].oversubscription);
    double senders = c == MS_ALL_TO_ALL ? 1.0 : p;
    return bytes * (n - p) / n / (senders * nic);
}

static void check_collectives(machine *m, const ms_group *group, long num_ranks)
{
    ms_span span = ms_group_span(group, num_ranks, m->cluster);
    for (int c = 0; c < MS_NUM_COLLECTIVES; c++) {
        ms_collective_law law =
            ms_collective_law_make((ms_collective)c, &span, m->cluster, m->profile);
        for (double bytes = 64.0; bytes < 1e12; bytes *= 64.0) {
            double seconds = ms_collective_s(&law, bytes);
            double at_least_s = least_s(m, &span, (ms_collective)c, bytes);
            if (seconds < LEAST * at_least_s)
                too_fast(m,
                         ms_arena_printf(m->cx->arena, "%s of %g B over %ld ranks",
                                         ms_collective_names[c], bytes, span.size),
                         seconds, at_least_s);
        }
    }
}

/* Groups of 2 to 64 ranks, neighbours or one a node. */
static void check_groups(machine *m)
{
    if (m->cluster->levels[0].topology == MS_TORUS)
        return;
    long most = m->cluster->num_levels > 1 ? 512 : m->cluster->gpus_per_node;
    for (long size = 2; size <= 64 && size <= most; size *= 2) {
        for (long stride = 1; stride * size <= most; stride *= 8) {
            ms_group group = {size, 1, {{size, stride}}};
            check_collectives(m, &group, stride * size);
        }
    }
}

static void nothing_is_faster_than_listed(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num_names, num_pricers = 0;
    ASSERT_OK(ms_cluster_names(cx, &names, &num_names), cx);
    for (int i = 0; i < num_names; i++) {
        machine m = {.cx = cx, .rng = ms_rng_seed((uint64_t)i)};
        ASSERT_OK(ms_cluster_load(cx, names[i], &m.cluster), cx);
        ASSERT_OK(
            ms_profile_load_for(cx, m.cluster->device.profile, m.cluster, &m.profile),
            cx);
        num_pricers += check_kernels(&m);
        check_groups(&m);
    }
    assert_true(num_pricers > 10 * num_names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_faster_than_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
