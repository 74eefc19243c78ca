/* Redistributions (sequences of collectives) between random placements of a tensor on
 * random meshes of at most 16 ranks: executed on real data they give what sharding the
 * whole tensor gives, they carry the bytes that they are priced for, cost no more than
 * the greedy plan, and on small meshes as little as the best of all sequences, found
 * by brute force from what the ranks hold. */
#include "tests/property/redistribute_cases.h"

/* ---- executing a plan ---- */

/* Checks that every rank holds its part of the tensor `whole`. If the target placement is
 * partial on an axis, the parts are first reduced, and the reduced parts compared. */
static void check_result(const example *e, const ms_sharded_tensor *got,
                         const double *whole)
{
    bool partial = false;
    for (int i = 0; i < e->mesh.num_axes; i++)
        partial |= ms_placement_is_partial(e->task.to.at[i]);
    ms_sharded_tensor want =
        ms_sharded_tensor_cut(e->arena, &e->mesh, &e->tensor, &e->task.to, whole, NULL);
    for (long rank = 0; rank < e->mesh.num_ranks; rank++) {
        ASSERT_INT(got->parts[rank].num_elements, want.parts[rank].num_elements);
        for (long i = 0; i < want.parts[rank].num_elements && !partial; i++)
            if (!(fabs(got->parts[rank].data[i] - want.parts[rank].data[i]) <=
                  1e-12 *
                      /* partial averages are divided twice, so they round */
                      fabs(want.parts[rank].data[i])))
                fail_msg("%s: rank %ld holds %g instead of %g", describe(e), rank,
                         got->parts[rank].data[i], want.parts[rank].data[i]);
    }
    double *gathered = ms_sharded_tensor_gather(e->arena, got);
    for (long i = 0; i < ms_global_tensor_elements(&e->tensor); i++)
        ASSERT_NEAR(gathered[i], whole[i], 1e-9);
}

static void run_plan(const example *e, const ms_redistribution *plan, ms_rng *rng)
{
    long n = ms_global_tensor_elements(&e->tensor);
    double *whole = MS_NEW_ARRAY(e->arena, n, double);
    for (long i = 0; i < n; i++)
        whole[i] = (double)(1 + i);
    ms_sharded_tensor held =
        ms_sharded_tensor_cut(e->arena, &e->mesh, &e->tensor, &e->task.from, whole, rng);
    held = ms_run_redistribution(e->arena, held, plan);
    held.spec = e->task.to; /* the plan has no steps for axes of one rank */
    check_result(e, &held, whole);
}

/* ---- greedy ---- */

/* Seconds of the greedy plan. From the innermost axis out, a placement that differs is
 * changed directly where one collective over that axis can, and replicated otherwise;
 * then the replicated axes are sliced from the outermost in. */
static double greedy_s(const example *e)
{
    ms_spec at = e->task.from;
    double seconds = 0.0;
    for (int i = e->mesh.num_axes - 1; i >= 0; i--) {
        ms_spec next = at;
        next.at[i] = e->task.to.at[i];
        if (e->mesh.axes[i].size == 1)
            at.at[i] = next.at[i] = ms_replicate;
        if (ms_placement_equal(at.at[i], next.at[i]) || at.at[i].kind == MS_REPLICATE)
            continue;
        double direct_s = single_change_s(e, &at, &next, 1U << i, false);
        if (!isfinite(direct_s)) {
            next.at[i] = ms_replicate;
            direct_s = single_change_s(e, &at, &next, 1U << i, false);
        }
        seconds += direct_s;
        at = next;
    }
    for (int i = 0; i < e->mesh.num_axes; i++) {
        ms_spec next = at;
        next.at[i] = e->task.to.at[i];
        if (e->mesh.axes[i].size > 1 && !ms_placement_equal(at.at[i], next.at[i]))
            seconds += single_change_s(e, &at, &next, 1U << i, false);
        at = next;
    }
    return seconds;
}

/* ---- tests ---- */

#define NUM_CASES 3000

static void executed_plans_give_the_target(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *cluster;
    const ms_profile *profile;
    int num_planned = 0, num_greedy = 0, num_cheaper = 0;
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &cluster), cx);
    ASSERT_OK(ms_profile_load(cx, "h100-sxm", &profile), cx);
    for (uint64_t seed = 0; seed < NUM_CASES; seed++) {
        ms_rng rng = ms_rng_seed(seed);
        ms_arena_mark mark = ms_arena_save(cx->arena);
        example e = {.arena = cx->arena};
        random_mesh(&rng, 16, &e.mesh);
        e.tensor = random_tensor(&rng, seed % 2 == 0 ? 1 : e.mesh.num_ranks / 2 + 1);
        random_prices(&rng, cx, cluster, profile, &e);
        int partial = MS_PARTIAL_SUM + (int)ms_rng_below(&rng, 4);
        e.task = (ms_redistribute_task){.mesh = &e.mesh,
                                        .tensor = &e.tensor,
                                        .prices = &e.prices,
                                        .is_direct = ms_rng_below(&rng, 4) == 0};
        e.task.from = random_spec(&rng, &e.mesh, &e.tensor, partial);
        e.task.to = random_spec(&rng, &e.mesh, &e.tensor, partial);
        ms_redistribution plan;
        const char *why;
        if (ms_redistribute(cx->arena, &e.task, &plan, &why)) {
            assert_true(plan.is_optimal);
            run_plan(&e, &plan, &rng);
            double greedy = greedy_s(&e);
            if (plan.seconds > greedy * (1.0 + 1e-12))
                fail_msg("%s: %g s, greedy %g s", describe(&e), plan.seconds, greedy);
            num_planned++;
            num_greedy += isfinite(greedy);
            num_cheaper += plan.seconds < greedy * 0.999 && isfinite(greedy);
        } else if (strstr(why, "cannot become") == NULL) {
            fail_msg("%s: %s", describe(&e), why);
        }
        ms_arena_rewind(cx->arena, mark);
    }
    print_message("%d of %d executed; greedy finds a way for %d and is dearer for %d\n",
                  num_planned, NUM_CASES, num_greedy, num_cheaper);
    assert_true(num_planned > NUM_CASES / 2);
    assert_true(num_greedy > NUM_CASES / 3);
}

#define NUM_WIDE_CASES 60

/* On five to seven axes there are far more placements than the search looks at: it
 * finds a plan, the plan gives the target when executed, and it does not claim to be
 * the cheapest when the search was cut short. */
static void plans_over_many_axes_give_the_target(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};
    static const long twos[] = {2, 2, 2, 2, 2, 2, 2};
    ms_ctx *cx = test_cx();
    int num_planned = 0, num_cut_short = 0;
    for (uint64_t seed = 0; seed < NUM_WIDE_CASES; seed++) {
        ms_rng rng = ms_rng_seed(seed);
        ms_arena_mark mark = ms_arena_save(cx->arena);
        example e = {.arena = cx->arena};
        e.mesh = ms_mesh_make(names, twos, 5 + (int)ms_rng_below(&rng, 3));
        e.tensor = random_tensor(&rng, seed % 2 == 0 ? 1 : 4);
        e.prices = ms_collective_prices_pytorch(cx->arena, &e.mesh, &ms_pytorch_defaults,
                                                1L << ms_rng_below(&rng, 4));
        e.task = (ms_redistribute_task){.mesh = &e.mesh,
                                        .tensor = &e.tensor,
                                        .prices = &e.prices,
                                        .is_direct = seed % 4 != 0};
        e.task.from = random_spec(&rng, &e.mesh, &e.tensor, MS_PARTIAL_SUM);
        e.task.to = random_spec(&rng, &e.mesh, &e.tensor, MS_PARTIAL_SUM);
        ms_redistribution plan;
        const char *why;
        if (ms_redistribute(cx->arena, &e.task, &plan, &why)) {
            run_plan(&e, &plan, &rng);
            num_planned++;
            num_cut_short += !plan.is_optimal;
        } else if (strstr(why, "cannot become") == NULL) {
            fail_msg("%s: %s", describe(&e), why);
        }
        ms_arena_rewind(cx->arena, mark);
    }
    print_message("%d of %d executed, %d cut short\n", num_planned, NUM_WIDE_CASES,
                  num_cut_short);
    assert_true(num_planned > NUM_WIDE_CASES / 4);
    assert_true(num_cut_short > NUM_WIDE_CASES / 8);
}

/* ---- brute force ---- */

#define MAX_NODES 128

/* All placements of a tensor as nodes, and the seconds of the single change between
 * each two. */
typedef struct graph {
    int num_nodes;
    ms_spec nodes[MAX_NODES];
    double seconds[MAX_NODES][MAX_NODES];
} graph;

static bool is_product_of_later(const ms_mesh *mesh, int axis, long factor)
{
    ms_axis_set later = (1U << mesh->num_axes) - (2U << axis);
    for (ms_axis_set axes = later;; axes = (axes - 1) & later) {
        if (ms_axis_set_ranks(mesh, axes) == factor)
            return true;
        if (axes == 0)
            return false;
    }
}

/* Lists every placement, with every split factor that is a product of the sizes of
 * later axes. */
static void list_specs(graph *g, const example *e, ms_spec spec, int axis)
{
    if (axis == e->mesh.num_axes) {
        assert_true(g->num_nodes < MAX_NODES);
        g->nodes[g->num_nodes++] = spec;
        return;
    }
    spec.at[axis] = ms_replicate;
    list_specs(g, e, spec, axis + 1);
    spec.at[axis].kind = MS_PARTIAL_SUM;
    list_specs(g, e, spec, axis + 1);
    for (int dim = 0; dim < e->tensor.num_dims; dim++)
        for (int factor = 1; factor <= e->mesh.num_ranks; factor++) {
            spec.at[axis] = ms_shard(e->tensor.dims[dim]);
            spec.at[axis].split_factor = factor > 1 ? factor : 0;
            if (is_product_of_later(&e->mesh, axis, factor))
                list_specs(g, e, spec, axis + 1);
        }
}

/* Seconds of the best single change from one placement to the other, over any set of
 * axes that includes all that differ. */
static double edge_s(const example *e, const ms_spec *from, const ms_spec *to)
{
    double best_s = INFINITY;
    ms_axis_set differ = 0;
    for (int i = 0; i < e->mesh.num_axes; i++)
        if (!ms_placement_equal(from->at[i], to->at[i]))
            differ |= 1U << i;
    ms_arena_mark mark = ms_arena_save(e->arena);
    for (ms_axis_set axes = 1; axes < 1U << e->mesh.num_axes; axes++)
        if ((axes & differ) == differ)
            best_s = fmin(best_s, single_change_s(e, from, to, axes, true));
    ms_arena_rewind(e->arena, mark);
    return best_s;
}

/* Whether the step from placement `from` to `to` shards `axis` in a way that plans use.
 * One of these suffices: the axis does not begin to shard a dim; its split factor is one;
 * it shards as in `target`, the placement at the end; all shards of its dim are in an
 * order of axes. */
static bool joins_well(const example *e, const ms_spec *from, const ms_spec *to,
                       const ms_spec *target, int axis)
{
    ms_axis_order order;
    ms_placement at = to->at[axis];
    return at.kind != MS_SHARD || ms_placement_equal(at, from->at[axis]) ||
           ms_placement_pieces(at) == 1 || ms_placement_equal(at, target->at[axis]) ||
           ms_spec_order(&e->mesh, to, at.dim, &order);
}

/* Whether a plan may have the step from placement `from` to `to` (indices of graph
 * nodes). `ends`: source and target of the whole redistribution. A step may turn an axis
 * from replicated to partial only if that axis is replicated in the source and partial in
 * the target; and it may begin to shard only as `joins_well` allows. */
static bool may_pass(const example *e, const graph *g, const int *ends, int from, int to)
{
    const ms_spec *source = &g->nodes[ends[0]], *target = &g->nodes[ends[1]];
    for (int i = 0; i < e->mesh.num_axes; i++) {
        bool divides = g->nodes[from].at[i].kind == MS_REPLICATE &&
                       ms_placement_is_partial(g->nodes[to].at[i]);
        if (divides && (source->at[i].kind != MS_REPLICATE ||
                        !ms_placement_is_partial(target->at[i])))
            return false;
        if (!joins_well(e, &g->nodes[from], &g->nodes[to], target, i))
            return false;
    }
    return true;
}

/* Seconds of the cheapest sequence of steps from graph node `from` to `to`
 * (Bellman-Ford). `all`: any placement may lie in between; otherwise only those whose
 * split factors stand for orders of axes. */
static double shortest_s(const example *e, const graph *g, int from, int to, bool all)
{
    double best_s[MAX_NODES];
    bool again = true;
    for (int i = 0; i < g->num_nodes; i++)
        best_s[i] = i == from ? 0.0 : (double)INFINITY;
    while (again) {
        again = false;
        for (int i = 0; i < g->num_nodes; i++)
            for (int j = 0; j < g->num_nodes && isfinite(best_s[i]); j++)
                if (best_s[i] + g->seconds[i][j] < best_s[j] &&
                    (all || j == to || is_ordered(e, &g->nodes[j])) &&
                    may_pass(e, g, (const int[]){from, to}, i, j)) {
                    best_s[j] = best_s[i] + g->seconds[i][j];
                    again = true;
                }
    }
    return best_s[to];
}

typedef struct tally {
    int ways, best;
} tally;

/* The planned redistribution from graph node `from` to `to` costs no less than the best
 * sequence through any placements, and no more than the best sequence through placements
 * whose split factors stand for orders of axes. */
static void check_pair(const example *e, const graph *g, int from, int to, tally *count)
{
    example one = *e;
    one.task.from = g->nodes[from];
    one.task.to = g->nodes[to];
    ms_redistribution plan;
    const char *why;
    bool possible = ms_redistribute(e->arena, &one.task, &plan, &why);
    double best_s = shortest_s(e, g, from, to, true);
    double ordered_s = shortest_s(e, g, from, to, false);
    if (possible != isfinite(best_s))
        fail_msg("%s: %s", describe(&one), possible ? "possible" : why);
    if (!possible)
        return;
    if (plan.seconds < best_s * (1.0 - 1e-9) || plan.seconds > ordered_s * (1.0 + 1e-9))
        fail_msg("%s: %g s, best %g s, best by order %g s", describe(&one), plan.seconds,
                 best_s, ordered_s);
    count->ways++;
    count->best += plan.seconds <= best_s * (1.0 + 1e-9);
}

static void check_all_pairs(const example *e, const graph *g, tally *count)
{
    for (int i = 0; i < g->num_nodes; i++)
        for (int j = 0; j < g->num_nodes; j++) {
            ms_arena_mark mark = ms_arena_save(e->arena);
            if (e->mesh.num_axes == 2 ||
                (is_ordered(e, &g->nodes[i]) && is_ordered(e, &g->nodes[j])))
                check_pair(e, g, i, j, count);
            ms_arena_rewind(e->arena, mark);
        }
}

static void plans_are_as_cheap_as_the_best_of_all(void **state)
{
    (void)state;
    static const struct {
        int num_axes, num_dims;
        long sizes[3], dims[2];
        double element_bytes;
        /* 0: prices of a cluster; otherwise those of PyTorch, with hosts of so many
         * GPUs */
        long gpus_per_host;
    } spaces[] = {{2, 2, {2, 2}, {4, 4}, 1e6, 0},  {2, 2, {2, 3}, {6, 6}, 1e5, 2},
                  {2, 2, {3, 2}, {6, 12}, 64, 4},  {3, 1, {2, 2, 2}, {8}, 1e6, 2},
                  {3, 1, {2, 4, 2}, {16}, 1e7, 0}, {3, 1, {3, 2, 2}, {12}, 1e4, 2}};
    ms_ctx *cx = test_cx();
    const ms_cluster *cluster;
    const ms_profile *profile;
    tally count = {0};
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &cluster), cx);
    ASSERT_OK(ms_profile_load(cx, "h100-sxm", &profile), cx);
    for (size_t n = 0; n < sizeof spaces / sizeof spaces[0]; n++) {
        example e = {.arena = cx->arena};
        graph *g = MS_NEW(cx->arena, graph);
        e.mesh = ms_mesh_make(axis_names, spaces[n].sizes, spaces[n].num_axes);
        e.tensor = (ms_global_tensor){"x", spaces[n].num_dims, "ab", {0}, 0};
        e.tensor.dims[e.tensor.num_dims] = '\0';
        e.tensor.element_bytes = spaces[n].element_bytes;
        for (int i = 0; i < e.tensor.num_dims; i++)
            e.tensor.size[i] = spaces[n].dims[i];
        if (spaces[n].gpus_per_host > 0)
            e.prices = ms_collective_prices_pytorch(
                cx->arena, &e.mesh, &ms_pytorch_defaults, spaces[n].gpus_per_host);
        else
            ASSERT_OK(ms_collective_prices_make(cx, &e.mesh, cluster, profile, &e.prices),
                      cx);
        e.task = (ms_redistribute_task){&e.mesh, &e.tensor, {{{0}}},
                                        {{{0}}}, &e.prices, false};
        list_specs(g, &e, (ms_spec){0}, 0);
        for (int i = 0; i < g->num_nodes; i++)
            for (int j = 0; j < g->num_nodes; j++)
                g->seconds[i][j] = edge_s(&e, &g->nodes[i], &g->nodes[j]);
        tally here = {0};
        check_all_pairs(&e, g, &here);
        print_message("space %zu: %d ways, %d as cheap as any\n", n, here.ways,
                      here.best);
        if (e.mesh.num_axes == 2)
            ASSERT_INT(here.best, here.ways);
        count.ways += here.ways;
        count.best += here.best;
    }
    assert_true(count.ways > 1000);
    assert_true(count.best > count.ways * 0.9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(executed_plans_give_the_target),
        cmocka_unit_test(plans_over_many_axes_give_the_target),
        cmocka_unit_test(plans_are_as_cheap_as_the_best_of_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
