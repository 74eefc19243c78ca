#include "topo/fabric.h"

#include "base/rng.h"
#include "topo/torus.h"

#include "tests/test.h"

#include <time.h>

static const ms_cluster *cluster_of(ms_ctx *cx, const char *name)
{
    const ms_cluster *cluster;
    ASSERT_OK(ms_cluster_load(cx, name, &cluster), cx);
    return cluster;
}

static const char *route_text(ms_ctx *cx, const ms_fabric *fabric, long from, long to)
{
    int route[MS_MAX_ROUTE];
    int num = ms_fabric_route(fabric, from, to, route);
    const char *text = "";
    for (int i = 0; i < num; i++)
        text = ms_arena_printf(cx->arena, "%s%s%s", text, i == 0 ? "" : ", ",
                               ms_fabric_link_name(cx->arena, fabric, route[i]));
    return text;
}

/* In a rail-optimised fabric GPU i of every node of a scalable unit is on leaf switch
 * i; a message to another rail goes through the GPU of the sender's node on that rail
 * (PXN in NCCL). Source: docs.nvidia.com DGX SuperPOD H100. */
static void routes_on_rails_keep_to_the_rail(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_fabric *f =
        ms_fabric_make(cx->arena, cluster_of(cx, "hgx-h100"), 1024, NULL);
    ASSERT_TEXT(route_text(cx, f, 5, 5), "");
    ASSERT_TEXT(route_text(cx, f, 1, 6), "nvlink out 1, nvlink in 6");
    ASSERT_TEXT(route_text(cx, f, 1, 9), "nic out 1, nic in 9");
    ASSERT_TEXT(route_text(cx, f, 1, 14),
                "nvlink out 1, nvlink in 6, nic out 6, nic in 14");
    ASSERT_TEXT(
        route_text(cx, f, 3, 259),
        "nic out 3, leaf uplink out 0 rail 3, leaf uplink in 1 rail 3, nic in 259");
    ASSERT_TEXT(route_text(cx, f, 3, 260),
                "nvlink out 3, nvlink in 4, nic out 4, leaf uplink out 0 rail 4, "
                "leaf uplink in 1 rail 4, nic in 260");
}

static void capacities_follow_the_levels(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_fabric *f = ms_fabric_make(cx->arena, cluster_of(cx, "hgx-h100"), 260, NULL);
    static const struct {
        const char *name;
        int num;
        double bytes_per_s;
    } rows[] = {{"nvlink out 5", 1, 450e9},
                {"nic in 12", 1, 50e9},
                {"leaf uplink out 0 rail 7", 1, 32 * 50e9},
                /* the second scalable unit has only 4 GPUs: rail 3 has one of them, rail
                 * 4 has none */
                {"leaf uplink in 1 rail 3", 1, 50e9},
                {"leaf uplink in 1 rail 4", 1, 0.0},
                {"nvlink 5", 2, 450e9},
                {"nic", 520, 50e9},
                {"leaf uplink 0", 16, 32 * 50e9},
                {"nvlink", 520, 450e9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int links[1];
        ASSERT_INT(ms_fabric_find(f, rows[i].name, 1, links), rows[i].num);
        ASSERT_NEAR(f->links[links[0]].bytes_per_s, rows[i].bytes_per_s, 1e-15);
    }
    static const char *const absent[] = {
        "",           "nic 260", "nic out",        "leaf",   "spine uplink",
        "nic out 3x", "nic -1",  "nvlink out 5 6", "nicout", "nic 99999999999999999999"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if (strcmp(absent[i], "nic out") != 0)
            ASSERT_INT(ms_fabric_find(f, absent[i], 0, NULL), 0);
    ASSERT_INT(ms_fabric_find(f, "nic out", 0, NULL), 260);
}

static ms_cluster made_cluster(double oversubscription, double nics_per_gpu)
{
    return (ms_cluster){.name = "test",
                        .gpus_per_node = 4,
                        .num_levels = 3,
                        .levels = {{.name = "link",
                                    .gpus_per_domain = 4,
                                    .bandwidth_bytes_per_s = 100e9,
                                    .oversubscription = 1.0},
                                   {.name = "leaf",
                                    .gpus_per_domain = 16,
                                    .bandwidth_bytes_per_s = 10e9,
                                    .oversubscription = 1.0,
                                    .nics_per_gpu = nics_per_gpu},
                                   {.name = "spine",
                                    .bandwidth_bytes_per_s = 10e9,
                                    .oversubscription = oversubscription,
                                    .nics_per_gpu = nics_per_gpu}}};
}

/* Oversubscription of k:1: when all GPUs of one half send to partners in the
 * other half, each gets 1/k of its NIC's rate. */
static void oversubscription_divides_the_rate_of_each_flow(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    for (double k = 1; k <= 8; k *= 2) {
        ms_cluster cluster = made_cluster(k, 1.0);
        const ms_fabric *f = ms_fabric_make(cx->arena, &cluster, 32, NULL);
        double *flows = MS_NEW_ARRAY(cx->arena, f->num_links, double);
        int route[MS_MAX_ROUTE];
        for (long gpu = 0; gpu < 16; gpu++) {
            int num = ms_fabric_route(f, gpu, gpu + 16, route);
            for (int i = 0; i < num; i++)
                flows[route[i]] += 1.0;
        }
        double rate = INFINITY;
        for (int i = 0; i < f->num_links; i++)
            if (flows[i] > 0.0)
                rate = fmin(rate, f->links[i].bytes_per_s / flows[i]);
        ASSERT_NEAR(rate, 10e9 / k, 1e-15);
    }
}

static void gpus_share_nics_where_there_are_fewer(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cluster cluster = made_cluster(1.0, 0.25);
    const ms_fabric *f = ms_fabric_make(cx->arena, &cluster, 30, NULL);
    ASSERT_INT(ms_fabric_find(f, "nic", 0, NULL), 16);
    ASSERT_TEXT(route_text(cx, f, 3, 4), "nic out 0, nic in 1");
    ASSERT_NEAR(f->links[ms_fabric_find(f, "link", 0, NULL)].bytes_per_s, 40e9, 1e-15);
}

/* Each pair of the 8 GPUs of an MI300X node has a 64 GB/s link of its own:
 * stas00/ml-engineering network/README.md. */
static void a_mesh_has_a_wire_for_each_pair(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_fabric *f = ms_fabric_make(cx->arena, cluster_of(cx, "mi300x"), 19, NULL);
    int link;
    ASSERT_INT(ms_fabric_find(f, "xgmi", 0, NULL), 2 * 56 + 3 * 2);
    ASSERT_INT(ms_fabric_find(f, "xgmi 3-5", 1, &link), 1);
    ASSERT_NEAR(f->links[link].bytes_per_s, 64e9, 1e-12);
    ASSERT_INT(ms_fabric_find(f, "xgmi 10", 0, NULL), 14);
    ASSERT_INT(ms_fabric_find(f, "xgmi 3-9", 0, NULL), 0);
    ASSERT_TEXT(route_text(cx, f, 17, 18), "xgmi 17-18");
    ASSERT_TEXT(route_text(cx, f, 17, 16), "xgmi 17-16");
    ASSERT_TEXT(route_text(cx, f, 1, 12), "nic out 1, nic in 12");
}

/* TPU slices are those of Google's list for v5p (cloud.google.com/tpu/docs): 2x2x2,
 * 2x4x4, 4x4x4, 4x4x8, ..., 16x16x24. Slices of whole 4x4x4 cubes are closed (rings in
 * every dim). */
static void slices_are_those_that_one_can_ask_for(void **state)
{
    (void)state;
    static const struct {
        long gpus, side[3];
        bool closed;
    } rows[] = {
        {4, {1, 2, 2}, false},     {8, {2, 2, 2}, false},      {16, {2, 2, 4}, false},
        {32, {2, 4, 4}, false},    {64, {4, 4, 4}, true},      {128, {4, 4, 8}, true},
        {256, {4, 8, 8}, true},    {512, {8, 8, 8}, true},     {1024, {8, 8, 16}, true},
        {2048, {8, 16, 16}, true}, {4096, {16, 16, 16}, true}, {6144, {16, 16, 24}, true},
        {7, {1, 1, 7}, false},     {31, {2, 4, 4}, false}};
    ms_ctx *cx = test_cx();
    const ms_level *level = &cluster_of(cx, "tpu-v5p")->levels[0];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_torus torus = ms_torus_slice(level, rows[i].gpus);
        for (int dim = 0; dim < 3; dim++) {
            ASSERT_INT(torus.side[dim], rows[i].side[dim]);
            ASSERT_INT(torus.closed[dim], rows[i].closed);
        }
    }
}

static void routes_on_a_torus_go_the_short_way_round(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *cluster = cluster_of(cx, "tpu-v5p");
    const ms_fabric *f = ms_fabric_make(cx->arena, cluster, 64, NULL);
    ASSERT_INT(ms_fabric_find(f, "ici", 0, NULL), 64 * 6);
    ASSERT_INT(ms_fabric_find(f, "ici 7", 0, NULL), 6);
    ASSERT_INT(ms_fabric_find(f, "ici +y", 0, NULL), 64);
    ASSERT_TEXT(route_text(cx, f, 0, 3), "ici -z 0");
    ASSERT_TEXT(route_text(cx, f, 0, 1), "ici +z 0");
    ASSERT_TEXT(route_text(cx, f, 0, 2), "ici +z 0, ici +z 1");
    ASSERT_TEXT(route_text(cx, f, 63, 16 + 3), "ici +x 63, ici +x 15, ici +y 31");
    /* a slice of 2 x 2 x 4, which is open */
    const ms_fabric *open = ms_fabric_make(cx->arena, cluster, 16, NULL);
    ASSERT_TEXT(route_text(cx, open, 0, 3), "ici +z 0, ici +z 1, ici +z 2");
    ASSERT_INT(ms_fabric_find(open, "ici", 0, NULL), 2 * (8 + 8 + 12));
    int link;
    ASSERT_INT(ms_fabric_find(f, "ici +x 5", 1, &link), 1);
    ASSERT_NEAR(f->links[link].bytes_per_s, 90e9, 1e-12);
}

/* Where a message is between two links: in a GPU, on a NIC's wire, or in a switch. A
 * link must begin where the one before it ended. */
typedef struct place {
    /* 0: a GPU; 1: the switch of the scale-up domain; 2 + level: a switch of that
     * level */
    int kind;
    long index;
} place;

static long torus_neighbour(const ms_torus *torus, long position, long dim, bool up)
{
    long stride = 1;
    for (int i = torus->num_dims - 1; i > dim; i--)
        stride *= torus->side[i];
    long side = torus->side[dim], at = position / stride % side;
    return position + ((at + (up ? 1 : side - 1)) % side - at) * stride;
}

/* Moves the message at `at` along the link towards GPU `to`; false: the link does not
 * begin at `at`. */
static bool follow(const ms_fabric *f, const ms_link *link, long to, place *at)
{
    const ms_cluster *c = f->cluster;
    long inner =
        c->levels[0].gpus_per_domain > 0 ? c->levels[0].gpus_per_domain : f->num_gpus;
    double nics = c->num_levels > 1 ? c->levels[1].nics_per_gpu : 1.0;
    long share = nics > 0.0 && nics < 1.0 ? lround(1.0 / nics) : 1;
    switch (link->kind) {
    case MS_LINK_PORT:
        if (link->out ? at->kind != 0 || at->index != link->index
                      : at->kind != 1 || at->index != link->index / inner)
            return false;
        *at = link->out ? (place){1, link->index / inner} : (place){0, link->index};
        return true;
    case MS_LINK_PEER:
        if (at->kind != 0 || at->index != link->index / inner)
            return false;
        at->index = at->index / inner * inner + link->index % inner;
        return true;
    case MS_LINK_TORUS: {
        long size = f->num_gpus < inner ? f->num_gpus : inner;
        ms_torus torus = ms_torus_slice(&c->levels[0], size);
        long positions = ms_torus_positions(&torus),
             from = link->index / MS_MAX_TORUS_DIMS;
        if (at->kind != 0 || at->index != from)
            return false;
        at->index = from / positions * positions +
                    torus_neighbour(&torus, from % positions,
                                    link->index % MS_MAX_TORUS_DIMS, link->out);
        return true;
    }
    case MS_LINK_NIC:
        if (link->out) {
            if (at->kind != 0 || at->index / share != link->index)
                return false;
            *at = (place){2, at->index};
            return true;
        }
        if (at->kind < 2 || to / share != link->index)
            return false;
        *at = (place){0, to};
        return true;
    case MS_LINK_UPLINK: {
        long rails = c->levels[link->level].rails > 0 ? c->levels[link->level].rails : 1;
        long size = c->levels[link->level].gpus_per_domain;
        long gpu = link->out ? at->index : to;
        if (at->kind < 2 || link->index != gpu / size * rails + gpu % rails)
            return false;
        at->kind = 2 + link->level + link->out;
        return true;
    }
    case MS_NUM_LINK_KINDS:
    default:
        return false;
    }
}

static const struct {
    const char *cluster;
    long gpus;
} fabrics[] = {{"hgx-h100", 600},         {"gb200-nvl72", 200}, {"mi300x", 50},
               {"tpu-v5p", 64},           {"tpu-v5p", 48},      {"tpu-v5p", 6300},
               {"h100-96g-500w", 3100},   {"h100-efa", 20},     {"hgx-a100-80g", 37},
               {"workstation-rtx4090", 1}};
#define NUM_FABRICS (sizeof fabrics / sizeof *fabrics)

static void consecutive_links_meet_and_end_at_the_receiver(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(11);
    for (size_t i = 0; i < NUM_FABRICS; i++) {
        ms_ctx *cx = test_cx();
        const ms_fabric *f = ms_fabric_make(cx->arena, cluster_of(cx, fabrics[i].cluster),
                                            fabrics[i].gpus, NULL);
        for (int n = 0; n < 2000; n++) {
            long from = (long)ms_rng_below(&rng, (uint64_t)fabrics[i].gpus);
            long to = (long)ms_rng_below(&rng, (uint64_t)fabrics[i].gpus);
            int route[MS_MAX_ROUTE], back[MS_MAX_ROUTE];
            int num = ms_fabric_route(f, from, to, route);
            assert_true(num < MS_MAX_ROUTE && (num == 0) == (from == to));
            place at = {0, from};
            for (int j = 0; j < num; j++)
                if (!follow(f, &f->links[route[j]], to, &at))
                    fail_msg("%s: %ld to %ld breaks at %s", fabrics[i].cluster, from, to,
                             ms_fabric_link_name(cx->arena, f, route[j]));
            ASSERT_INT(at.kind, 0);
            ASSERT_INT(at.index, to);
            ASSERT_INT(ms_fabric_route_either(f, to, from, false, back) > 0, num > 0);
        }
    }
}

/* Inside a node or a torus, and between NICs of one rail, the route back has as many
 * links as the route there. */
static void ways_back_are_as_long(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_FABRICS; i++) {
        ms_ctx *cx = test_cx();
        const ms_fabric *f = ms_fabric_make(cx->arena, cluster_of(cx, fabrics[i].cluster),
                                            fabrics[i].gpus, NULL);
        /* whole nodes only, so that every rail has a GPU */
        long most = fabrics[i].gpus - fabrics[i].gpus % 8;
        for (long from = 0; from < most && from < 64; from++)
            for (long to = 0; to < most; to += 1 + to / 7) {
                int route[MS_MAX_ROUTE];
                int there = ms_fabric_route(f, from, to, route);
                ASSERT_INT(ms_fabric_route(f, to, from, route), there);
            }
    }
}

static void every_link_is_found_by_its_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < NUM_FABRICS; i++) {
        ms_ctx *cx = test_cx();
        const ms_fabric *f = ms_fabric_make(cx->arena, cluster_of(cx, fabrics[i].cluster),
                                            fabrics[i].gpus, NULL);
        long step = 1 + f->num_links / 200;
        for (long link = 0; link < f->num_links; link += step) {
            int found[2];
            const char *name = ms_fabric_link_name(cx->arena, f, (int)link);
            ASSERT_INT(ms_fabric_find(f, name, 2, found), 1);
            ASSERT_INT(found[0], link);
        }
    }
}

static void large_fabrics_are_made_at_once(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *cluster = cluster_of(cx, "hgx-h100");
    clock_t begin = clock();
    const ms_fabric *f = ms_fabric_make(cx->arena, cluster, 16384, NULL);
    double made_s = (double)(clock() - begin) / CLOCKS_PER_SEC;
    ASSERT_INT(f->num_links, 2 * (16384 + 16384 + 64 * 8));
    assert_true(made_s < 0.5); /* takes a few ms; sanitizers are slower */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routes_on_rails_keep_to_the_rail),
        cmocka_unit_test(capacities_follow_the_levels),
        cmocka_unit_test(oversubscription_divides_the_rate_of_each_flow),
        cmocka_unit_test(gpus_share_nics_where_there_are_fewer),
        cmocka_unit_test(a_mesh_has_a_wire_for_each_pair),
        cmocka_unit_test(slices_are_those_that_one_can_ask_for),
        cmocka_unit_test(routes_on_a_torus_go_the_short_way_round),
        cmocka_unit_test(consecutive_links_meet_and_end_at_the_receiver),
        cmocka_unit_test(ways_back_are_as_long),
        cmocka_unit_test(every_link_is_found_by_its_name),
        cmocka_unit_test(large_fabrics_are_made_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
