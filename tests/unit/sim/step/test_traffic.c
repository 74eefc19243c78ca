/* Which bytes of a collective leave a domain, by going through the ranks one by one;
 * names of groups; and the list of a rank's traffic. */
#include "sim/step/traffic.h"

#include "tests/test.h"

/* ---- bytes over NICs ---- */

#define DOMAIN 8

typedef struct line {
    long size, stride;
} line;

static long domain_of(const line *l, long position)
{
    return position * l->stride / DOMAIN;
}

static ms_span span_of(const line *l)
{
    ms_cluster cluster = {
        .gpus_per_node = DOMAIN,
        .num_levels = 2,
        .levels = {{.gpus_per_domain = DOMAIN}, {.gpus_per_domain = 0}}};
    ms_group group = {.size = l->size, .num_modes = 1, .modes = {{l->size, l->stride}}};
    return ms_group_span(&group, l->size * l->stride, &cluster);
}

/* The fraction of the hops from a rank of the group to the next that leave a domain. With
 * `ring` there is also a hop from the last rank to the first. */
static double walked(const line *l, bool ring)
{
    double crossing = 0.0, hops = 0.0;
    for (long i = 0; i + !ring < l->size; i++) {
        hops += 1.0;
        crossing += domain_of(l, i) != domain_of(l, (i + 1) % l->size);
    }
    return crossing / hops;
}

static double strangers(const line *l)
{
    double crossing = 0.0, pairs = 0.0;
    for (long i = 0; i < l->size; i++)
        for (long j = 0; j < l->size; j++) {
            pairs += i != j;
            crossing += domain_of(l, i) != domain_of(l, j);
        }
    return crossing / pairs;
}

static void shares_over_nics_are_those_of_walking_the_ranks(void **state)
{
    (void)state;
    for (long size = 2; size <= 64; size *= 2)
        for (long stride = 1; stride <= 16; stride *= 2) {
            line l = {size, stride};
            ms_span span = span_of(&l);
            bool inside = size * stride <= DOMAIN;
            double ring = inside ? 0.0 : walked(&l, true);
            ASSERT_NEAR(ms_algorithm_nic_frac(MS_ALGORITHM_RING, &span), ring, 1e-12);
            ASSERT_NEAR(ms_algorithm_nic_frac(MS_ALGORITHM_SEND, &span),
                        inside ? 0.0 : walked(&l, false), 1e-12);
            ASSERT_NEAR(ms_algorithm_nic_frac(MS_ALGORITHM_DIRECT, &span),
                        inside ? 0.0 : strangers(&l), 1e-12);
        }
}

/* A tree of n ranks over N domains has n - 1 edges, of which as few as possible, N -
 * 1, cross domains. */
static void a_tree_crosses_once_per_domain_it_reaches(void **state)
{
    (void)state;
    line l = {32, 1};
    ms_span span = span_of(&l);
    ASSERT_NEAR(ms_algorithm_nic_frac(MS_ALGORITHM_TREE, &span), 3.0 / 31.0, 1e-12);
    line apart = {4, 8};
    span = span_of(&apart);
    ASSERT_NEAR(ms_algorithm_nic_frac(MS_ALGORITHM_TREE, &span), 1.0, 1e-12);
}

/* ---- groups ---- */

static ms_plan plan_of(long replicas, long shards, long cp)
{
    ms_plan plan = {.size = {1, replicas, shards, cp, 1}, .ep = 1, .etp = 1};
    return plan;
}

static void groups_have_the_names_of_their_axes(void **state)
{
    (void)state;
    static const struct {
        long replicas, shards, cp;
        const char *sharded, *all;
    } rows[] = {
        {1, 8, 1, "dp_shard", "dp_shard"},     {1, 8, 2, "fsdp", "fsdp"},
        {2, 8, 1, "dp_shard", "dp"},           {2, 8, 2, "fsdp", "dp_cp"},
        {8, 1, 1, "dp_shard", "dp_replicate"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_plan plan = plan_of(rows[i].replicas, rows[i].shards, rows[i].cp);
        ASSERT_TEXT(ms_traffic_group_name(&plan, MS_TRAFFIC_FSDP), rows[i].sharded);
        ASSERT_TEXT(ms_traffic_group_name(&plan, MS_TRAFFIC_ALL), rows[i].all);
    }
}

/* ---- a list ---- */

static ms_planned *planned_for(ms_ctx *cx, ms_plan *plan)
{
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_plan_check(cx, plan, workload->model, MS_NOWHERE), cx);
    ms_planned *planned = MS_NEW(cx->arena, ms_planned);
    ms_planned_open(cx, workload, plan, planned);
    return planned;
}

static ms_plan gpt_on(long pp, long dp, long tp)
{
    ms_plan plan = ms_plan_default(pp * dp * tp);
    plan.model = "gpt2";
    plan.sequence_length = 1024;
    plan.size[MS_PP] = pp;
    plan.size[MS_DP_SHARD] = dp;
    plan.size[MS_TP] = tp;
    plan.global_batch = 4 * dp;
    plan.zero = 1;
    return plan;
}

static double sum_of(const ms_traffic *traffic, ms_traffic_cause cause)
{
    double sum = 0.0;
    for (int i = 0; i < traffic->num_entries; i++)
        if (traffic->entries[i].cause == cause)
            sum += traffic->entries[i].count * traffic->entries[i].size_bytes;
    return sum;
}

/* GPT-2's embedding and head are one matrix of 50257 tokens (not padded at tp 1) x
 * 768: a rank with both gathers it once; two ranks each gather a copy and exchange its
 * gradient. */
static void a_tied_matrix_travels_once(void **state)
{
    (void)state;
    double matrix = 50257.0 * 768.0;
    ms_ctx *cx = test_cx();
    ms_plan one = gpt_on(1, 4, 1), two = gpt_on(2, 4, 1);
    ms_planned *p = planned_for(cx, &one);
    ms_traffic traffic = ms_traffic_make(cx, p, 0);
    double all = ms_model_params(p->workload->model).total;
    ASSERT_NEAR(sum_of(&traffic, MS_CAUSE_GATHER_FORWARD), 2.0 * all, 1e-12);
    ASSERT_NEAR(sum_of(&traffic, MS_CAUSE_TIED), 0.0, 0);
    ms_workload_close(p->workload);
    p = planned_for(cx, &two);
    double gathered = 0.0;
    for (int rank = 0; rank < 2; rank++) {
        traffic = ms_traffic_make(cx, p, rank);
        gathered += sum_of(&traffic, MS_CAUSE_GATHER_FORWARD);
        ASSERT_NEAR(sum_of(&traffic, MS_CAUSE_TIED), 4.0 * matrix, 1e-12);
    }
    ASSERT_NEAR(gathered, 2.0 * (all + matrix), 1e-12);
    ms_workload_close(p->workload);
}

/* Every stage but the last sends forward, every stage but the first backward: p - 1
 * hops of m micro-batches each way. */
static void stages_send_to_their_neighbours(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = gpt_on(4, 2, 1);
    ms_planned *p = planned_for(cx, &plan);
    double forward = 0.0, backward = 0.0, micro_batch = 2.0 * 1024.0 * 768.0;
    for (int rank = 0; rank < 4; rank++) {
        ms_traffic traffic = ms_traffic_make(cx, p, rank);
        forward += sum_of(&traffic, MS_CAUSE_SEND_FORWARD);
        backward += sum_of(&traffic, MS_CAUSE_SEND_BACKWARD);
    }
    ASSERT_NEAR(forward, 3.0 * 4.0 * micro_batch, 1e-12);
    ASSERT_NEAR(backward, 3.0 * 4.0 * micro_batch, 1e-12);
    ms_workload_close(p->workload);
}

/* Exposed seconds that remain are shared among the other entries in proportion to
 * their own seconds, and are never negative. */
static void exposure_is_shared_by_seconds(void **state)
{
    (void)state;
    ms_traffic_entry entries[] = {
        {.phase = MS_TRAFFIC_FORWARD, .count = 1, .one_s = 5, .exposed_s = 2},
        {.phase = MS_TRAFFIC_PARAMS, .count = 2, .one_s = 1},
        {.phase = MS_TRAFFIC_GRADS, .count = 1, .one_s = 6},
        {.phase = MS_TRAFFIC_OPTIMIZER, .count = 1, .one_s = 9, .exposed_s = 9}};
    ms_traffic traffic = {.num_entries = 4, .entries = entries};
    ms_traffic_share_exposure(&traffic, 6.0);
    ASSERT_NEAR(entries[0].exposed_s, 2.0, 0);
    ASSERT_NEAR(entries[1].exposed_s, 1.0, 1e-12);
    ASSERT_NEAR(entries[2].exposed_s, 3.0, 1e-12);
    ASSERT_NEAR(entries[3].exposed_s, 9.0, 0);
    ms_traffic_share_exposure(&traffic, 1.0);
    ASSERT_NEAR(entries[1].exposed_s + entries[2].exposed_s, 0.0, 0);
    ms_traffic_hide_exposure(&traffic);
    assert_true(isnan(entries[1].exposed_s) && isnan(entries[2].exposed_s));
    assert_false(isnan(entries[0].exposed_s) || isnan(entries[3].exposed_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_over_nics_are_those_of_walking_the_ranks),
        cmocka_unit_test(a_tree_crosses_once_per_domain_it_reaches),
        cmocka_unit_test(groups_have_the_names_of_their_axes),
        cmocka_unit_test(a_tied_matrix_travels_once),
        cmocka_unit_test(stages_send_to_their_neighbours),
        cmocka_unit_test(exposure_is_shared_by_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
