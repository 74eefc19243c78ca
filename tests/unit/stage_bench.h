/* For tests of pipeline stages: a model of eight layers and a framework (stack) with
 * round coefficients. */
#ifndef MS_TESTS_UNIT_STAGE_BENCH_H
#define MS_TESTS_UNIT_STAGE_BENCH_H

#include "sim/step/stage.h"

#include "tests/test.h"

typedef struct bench {
    ms_workload *workload;
    ms_model model;
    ms_stack stack;
    ms_profile profile;
    ms_cluster cluster;
} bench;

/* Gives the model eight layers of these kinds. */
static inline void set_kinds(bench *b, const int kinds[8])
{
    for (int i = 0; i < 8; i++) {
        b->model.kind_of_layer[i] = (unsigned char)kinds[i];
        bool alike = i > 0 && kinds[i] == kinds[i - 1];
        b->workload->first_alike[i] = alike ? b->workload->first_alike[i - 1] : i;
        for (int kind = 0; kind < 2; kind++)
            b->workload->layers_before[kind][i + 1] =
                b->workload->layers_before[kind][i] + (kinds[i] == kind);
    }
}

/* Opens a model with layers of two kinds, which alternate: 0 1 0 1 ... */
static inline bench *open_bench(void)
{
    ms_ctx *cx = test_cx();
    bench *b = MS_NEW(cx->arena, bench);
    b->model.num_layers = 8;
    b->model.num_kinds = 2;
    b->workload = MS_NEW(cx->arena, ms_workload);
    b->workload->model = &b->model;
    b->workload->stack = &b->stack;
    b->workload->profile = &b->profile;
    b->workload->cluster = &b->cluster;
    /* links so fast that collectives do not slow each other */
    b->cluster.levels[0].bandwidth_bytes_per_s = INFINITY;
    b->workload->pricer.hbm_bytes_per_s = 100;
    b->stack.interference_frac.value = 0.25;
    b->stack.dp_overlap.value = 1;
    b->stack.host_s_per_layer.value = NAN;
    b->model.kind_of_layer = MS_NEW_ARRAY(cx->arena, 8, unsigned char);
    b->workload->first_alike = MS_NEW_ARRAY(cx->arena, 8, int);
    for (int kind = 0; kind < 2; kind++)
        b->workload->layers_before[kind] = MS_NEW_ARRAY(cx->arena, 9, int);
    set_kinds(b, (int[]){0, 1, 0, 1, 0, 1, 0, 1});
    return b;
}

static inline ms_stage stage_of(const bench *b, const ms_block_costs *parts,
                                ms_stage_layout layout)
{
    ms_stage stage;
    ms_stage_make(b->workload, parts, &layout, &stage);
    return stage;
}

static inline ms_collective_law line(double base_s, double s_per_byte)
{
    ms_collective_law law = {.num_algorithms = 1};
    law.algorithm[0].alpha_s = base_s;
    law.algorithm[0].beta_s_per_byte = s_per_byte;
    return law;
}

/* Groups of 4 ranks inside a domain, in which a collective of 4 bytes takes 3 s. */
static inline ms_links make_links(void)
{
    ms_links links = {0};
    for (int axis = 0; axis < MS_NUM_BILL_AXES; axis++) {
        links.span[axis].size = 4;
        for (int c = 0; c < MS_NUM_COLLECTIVES; c++)
            links.law[axis][c] = line(1, 0.5);
    }
    return links;
}

/* Two collectives of 4 bytes, of 3 s each, that may hide behind products that take
 * `window_s` seconds. */
static inline ms_bill_comm two_of(ms_bill_axis axis, ms_collective collective,
                                  double window_s)
{
    return (ms_bill_comm){.axis = (unsigned char)axis,
                          .collective = (unsigned char)collective,
                          .count = 2,
                          .size_bytes = 4,
                          .window_s = window_s};
}

#endif
