/* Sequences of collectives between two placements of a tensor: PyTorch's prices, which
 * collectives, flattened axes, orders of axes, uneven parts, and what is impossible. */
#include "costmodel/reshard/redistribute.h"

#include "tests/support/pytorch_prices.h"
#include "tests/test.h"

#define MIB 1048576.0

/* A tensor of a x b elements of 4 bytes. */
static ms_global_tensor tensor_ab(long a, long b)
{
    return (ms_global_tensor){"x", 2, "ab", {a, b}, 4};
}

typedef struct fixture {
    ms_ctx *cx;
    ms_mesh mesh;
    ms_global_tensor tensor;
    ms_collective_prices prices;
} fixture;

static fixture *fixture_make(long dp, long tp, ms_global_tensor tensor)
{
    ms_ctx *cx = test_cx();
    fixture *f = MS_NEW(cx->arena, fixture);
    static const char *const names[] = {"dp", "tp"};
    *f = (fixture){.cx = cx, .tensor = tensor};
    f->mesh = ms_mesh_make(names, (const long[]){dp, tp}, 2);
    return f;
}

static void price_as_pytorch(fixture *f, long gpus_per_host)
{
    f->prices = ms_collective_prices_pytorch(f->cx->arena, &f->mesh, &ms_pytorch_defaults,
                                             gpus_per_host);
}

static void price_on(fixture *f, const char *name)
{
    const ms_cluster *cluster;
    const ms_profile *profile;
    ASSERT_OK(ms_cluster_load(f->cx, name, &cluster), f->cx);
    ASSERT_OK(ms_profile_load(f->cx, cluster->device.profile, &profile), f->cx);
    ASSERT_OK(ms_collective_prices_make(f->cx, &f->mesh, cluster, profile, &f->prices),
              f->cx);
}

static ms_redistribute_task task_of(const fixture *f, const char *from, const char *to)
{
    ms_redistribute_task task = {.mesh = &f->mesh, .tensor = &f->tensor};
    task.prices = &f->prices;
    ASSERT_OK(ms_spec_read(f->cx, from, &f->mesh, &f->tensor, &task.from), f->cx);
    ASSERT_OK(ms_spec_read(f->cx, to, &f->mesh, &f->tensor, &task.to), f->cx);
    return task;
}

static ms_redistribution plan_of(const fixture *f, const char *from, const char *to)
{
    ms_redistribute_task task = task_of(f, from, to);
    ms_redistribution plan;
    const char *why;
    if (!ms_redistribute(f->cx->arena, &task, &plan, &why))
        fail_msg("%s to %s: %s", from, to, why);
    assert_true(plan.is_optimal);
    return plan;
}

/* The planned changes as text, such as "slice dp, all-gather dp tp". */
static const char *changes_of(const fixture *f, const char *from, const char *to)
{
    ms_redistribution plan = plan_of(f, from, to);
    const char *text = "";
    for (int n = 0; n < plan.num_steps; n++) {
        text = ms_arena_printf(f->cx->arena, "%s%s%s", text, n == 0 ? "" : ", ",
                               ms_change_names[plan.steps[n].change]);
        for (int i = 0; i < f->mesh.num_axes; i++)
            if (plan.steps[n].axes >> i & 1)
                text = ms_arena_printf(f->cx->arena, "%s %s", text, f->mesh.axes[i].name);
    }
    return text;
}

static const char *reason(const fixture *f, const char *from, const char *to)
{
    ms_redistribute_task task = task_of(f, from, to);
    ms_redistribution plan;
    const char *why = NULL;
    if (ms_redistribute(f->cx->arena, &task, &plan, &why))
        fail_msg("%s to %s is possible", from, to);
    return why;
}

/* ---- PyTorch's prices ---- */

/* Times of all-gather and all-reduce of 64 MiB worked by hand from allgather_cost and
 * allreduce_cost of PyTorch (torch/distributed/tensor/_collective_utils.py). */
static void pytorchs_prices_of_64_mib_are_met(void **state)
{
    (void)state;
    static const struct {
        long ranks, gpus_per_host;
        double all_gather_us, all_reduce_us;
    } cases[] = {{8, 8, 634.4, 1262.1}, {8, 4, 2859.9, 5713.3}, {64, 8, 3365.4, 6724.3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture *f = fixture_make(1, cases[i].ranks, tensor_ab(4096, 4096));
        price_as_pytorch(f, cases[i].gpus_per_host);
        ASSERT_NEAR(plan_of(f, "S(a)@tp", "R").seconds * 1e6, cases[i].all_gather_us,
                    5e-5);
        ASSERT_NEAR(plan_of(f, "P@tp", "R").seconds * 1e6, cases[i].all_reduce_us, 5e-5);
    }
}

/* Bytes and times by redistribute_cost of PyTorch
 * (torch/distributed/tensor/_collective_utils.py), on 8 ranks of one host. */
static void each_change_is_one_collective_of_known_size(void **state)
{
    (void)state;
    const double whole = 64.0 * MIB, rate = 87.7 * 1024.0 * MIB;
    const struct {
        const char *from, *to;
        ms_change change;
        double after_bytes, size_bytes, us;
    } rows[] = {
        {"S(a)@tp", "R", MS_CHANGE_ALL_GATHER, whole, whole,
         6.6 + 7 * 0.6 + whole * 7 / 8 / rate * 1e6},
        {"S(a)@tp", "S(b)@tp", MS_CHANGE_ALL_TO_ALL, whole / 8, whole / 8,
         1.0 + 6.6 + 7 * 0.6 + whole / 8 * 7 / 8 / rate * 1e6},
        {"P@tp", "R", MS_CHANGE_ALL_REDUCE, whole, whole,
         6.6 + 14 * 0.6 + 2 * whole * 7 / 8 / rate * 1e6},
        {"P@tp", "S(a)@tp", MS_CHANGE_REDUCE_SCATTER, whole / 8, whole,
         6.6 + 7 * 0.6 + whole * 7 / 8 / rate * 1e6},
        {"R", "S(a)@tp", MS_CHANGE_SLICE, whole / 8, 0, 0},
        {"R", "P@tp", MS_CHANGE_DIVIDE, whole, 0, 0},
    };
    fixture *f = fixture_make(1, 8, tensor_ab(4096, 4096));
    price_as_pytorch(f, 8);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ms_redistribution plan = plan_of(f, rows[i].from, rows[i].to);
        ASSERT_INT(plan.num_steps, 1);
        ASSERT_INT(plan.steps[0].change, rows[i].change);
        ASSERT_NEAR(plan.steps[0].to_bytes, rows[i].after_bytes, 0);
        ASSERT_NEAR(plan.steps[0].size_bytes, rows[i].size_bytes, 0);
        ASSERT_NEAR(plan.seconds * 1e6, rows[i].us, 1e-12);
    }
}

static void what_no_collective_does_has_a_reason(void **state)
{
    (void)state;
    fixture *f = fixture_make(2, 4, tensor_ab(64, 32));
    price_as_pytorch(f, 8);
    ASSERT_TEXT(
        reason(f, "S(a)@tp", "P@tp"),
        "S(a)@tp cannot become P: ranks hold different parts, which are no terms of "
        "one reduction");
    ASSERT_TEXT(reason(f, "P@tp", "P(max)@tp"),
                "P@tp cannot become P(max): a value that waits for one reduction is none "
                "that waits for another");
    ms_redistribute_task task = task_of(f, "R", "R");
    ms_redistribution plan;
    const char *why;
    task.from.at[0].kind = MS_PARTIAL_MAX;
    task.from.at[1].kind = MS_PARTIAL_SUM;
    assert_false(ms_redistribute(f->cx->arena, &task, &plan, &why));
    ASSERT_TEXT(why, "a max over dp and a sum over tp do not commute");
}

/* ---- flattened axes ---- */

static void axes_with_the_same_change_share_a_collective(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *want;
    } cases[] = {
        {"P@dp P@tp", "R", "all-reduce dp tp"},
        {"P(max)@dp P(max)@tp", "R", "all-reduce dp tp"},
        {"P@dp P(avg)@tp", "R", "reduce-scatter tp, all-reduce dp, all-gather tp"},
        {"S(a)@dp S(a)@tp", "R", "all-gather dp tp"},
        {"S(a)@dp S(b)@tp", "R", "all-gather dp tp"},
        {"SS(a,4)@dp S(a)@tp", "R", "all-gather dp tp"},
        {"P@dp P@tp", "S(a)@dp S(a)@tp", "reduce-scatter dp tp"},
        {"P@dp P@tp", "SS(a,4)@dp S(a)@tp", "reduce-scatter dp tp"},
        {"P@dp P@tp", "S(b)@dp S(a)@tp", "reduce-scatter dp tp"},
        {"S(a)@dp S(a)@tp", "S(b)@dp S(b)@tp", "all-to-all dp tp"},
    };
    fixture *f = fixture_make(2, 4, tensor_ab(4096, 4096));
    price_as_pytorch(f, 8);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ASSERT_TEXT(changes_of(f, cases[i].from, cases[i].to), cases[i].want);
}

static void one_all_reduce_costs_less_than_two(void **state)
{
    (void)state;
    fixture *f = fixture_make(2, 4, tensor_ab(4096, 4096));
    price_on(f, "hgx-h100");
    double together_s = plan_of(f, "P@dp P@tp", "R").seconds;
    double first_s = plan_of(f, "P@dp P@tp", "P@dp").seconds;
    assert_true(together_s < first_s + plan_of(f, "P@dp", "R").seconds);
    ASSERT_TEXT(changes_of(f, "P@dp P@tp", "R"), "all-reduce dp tp");
}

/* ---- order of axes ---- */

/* FSDP over tensor parallelism: dp shards what tp has sharded, so that gathering over
 * dp gives the part of a tp rank. */
static void the_axis_that_splits_last_is_gathered_by_itself(void **state)
{
    (void)state;
    fixture *f = fixture_make(2, 4, tensor_ab(64, 32));
    price_as_pytorch(f, 8);
    ASSERT_TEXT(changes_of(f, "SS(a,4)@dp S(a)@tp", "S(a)@tp"), "all-gather dp");
    ASSERT_TEXT(changes_of(f, "S(a)@tp", "SS(a,4)@dp S(a)@tp"), "slice dp");
    ASSERT_TEXT(changes_of(f, "P@dp S(a)@tp", "SS(a,4)@dp S(a)@tp"), "reduce-scatter dp");
    ASSERT_TEXT(changes_of(f, "S(a)@dp S(a)@tp", "S(a)@dp"), "all-gather tp");
    ASSERT_TEXT(changes_of(f, "S(a)@dp S(a)@tp", "S(a)@tp"),
                "all-gather dp tp, slice tp");
}

static void parts_that_only_change_places_are_sent(void **state)
{
    (void)state;
    fixture *f = fixture_make(2, 4, tensor_ab(4096, 4096));
    price_on(f, "hgx-h100");
    ms_redistribution plan = plan_of(f, "S(a)@dp S(a)@tp", "SS(a,4)@dp S(a)@tp");
    ASSERT_INT(plan.num_steps, 1);
    ASSERT_INT(plan.steps[0].change, MS_CHANGE_PERMUTE);
    ASSERT_NEAR(plan.steps[0].size_bytes, 64.0 * MIB / 8.0, 0);
    price_as_pytorch(f, 8);
    ASSERT_TEXT(changes_of(f, "S(a)@dp S(a)@tp", "SS(a,4)@dp S(a)@tp"),
                "all-to-all dp tp, all-to-all dp tp");
}

/* A strided shard whose split factor does not mean an order of axes can only be undone
 * in the reverse order of its making. */
static void factors_that_are_no_order_are_undone_last_first(void **state)
{
    (void)state;
    fixture *f = fixture_make(2, 4, tensor_ab(48, 1));
    price_as_pytorch(f, 8);
    ASSERT_TEXT(changes_of(f, "SS(a,3)@dp", "R"), "all-gather dp");
    ASSERT_TEXT(changes_of(f, "SS(a,3)@dp S(a)@tp", "SS(a,3)@dp"), "all-gather tp");
    ASSERT_TEXT(changes_of(f, "SS(a,3)@dp S(a)@tp", "S(a)@tp"),
                "all-gather dp tp, slice tp");
    ASSERT_TEXT(changes_of(f, "R", "SS(a,3)@dp S(a)@tp"), "slice dp, slice tp");
}

/* ---- sizes ---- */

/* 10 rows over 4 ranks are 3, 3, 3, 1: collectives carry 4 x 3 rows. */
static void uneven_parts_are_padded_to_the_largest(void **state)
{
    (void)state;
    const struct {
        const char *from, *to;
        /* elements: held by a rank `before` and `after`; `size`: carried by the
         * collective */
        double before, after, size;
    } rows[] = {{"S(a)@tp", "R", 3 * 6, 10 * 6, 4 * 3 * 6},
                {"P@tp", "S(a)@tp", 10 * 6, 3 * 6, 4 * 3 * 6},
                {"P@tp", "R", 10 * 6, 10 * 6, 10 * 6},
                {"S(a)@tp", "S(b)@tp", 3 * 6, 10 * 2, 4 * 3 * 2}};
    fixture *f = fixture_make(1, 4, tensor_ab(10, 6));
    f->tensor.element_bytes = MIB;
    price_as_pytorch(f, 8);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ms_redistribution plan = plan_of(f, rows[i].from, rows[i].to);
        ASSERT_INT(plan.num_steps, 1);
        ASSERT_NEAR(plan.steps[0].from_bytes, rows[i].before * MIB, 0);
        ASSERT_NEAR(plan.steps[0].to_bytes, rows[i].after * MIB, 0);
        ASSERT_NEAR(plan.steps[0].size_bytes, rows[i].size * MIB, 0);
    }
}

/* A tensor replicated in a node is sliced before an all-gather over two nodes of 8
 * GPUs, so that every rank sends an eighth over its NIC. */
static void detours_use_the_links_of_a_node(void **state)
{
    (void)state;
    fixture *f = fixture_make(2, 8, tensor_ab(16384, 16384));
    price_on(f, "hgx-h100");
    ASSERT_TEXT(changes_of(f, "S(a)@dp", "R"), "slice tp, all-gather dp tp");
    ms_redistribute_task task = task_of(f, "S(a)@dp", "R");
    ms_redistribution direct, any = plan_of(f, "S(a)@dp", "R");
    const char *why;
    task.is_direct = true;
    assert_true(ms_redistribute(f->cx->arena, &task, &direct, &why));
    ASSERT_INT(direct.num_steps, 1);
    ASSERT_INT(direct.steps[0].change, MS_CHANGE_ALL_GATHER);
    assert_true(any.seconds < 0.5 * direct.seconds);
}

/* ---- limits ---- */

static void axes_of_one_rank_change_nothing(void **state)
{
    (void)state;
    fixture *f = fixture_make(1, 4, tensor_ab(64, 32));
    price_as_pytorch(f, 8);
    ASSERT_INT(plan_of(f, "S(a)@dp S(b)@tp", "P@dp S(b)@tp").num_steps, 0);
    ms_redistribution plan = plan_of(f, "S(a)@dp S(a)@tp", "P@dp");
    ASSERT_INT(plan.num_steps, 1);
    ASSERT_TEXT(ms_spec_text(f->cx->arena, &f->mesh, &plan.steps[0].from),
                "S(a)@dp S(a)@tp");
    ASSERT_TEXT(ms_spec_text(f->cx->arena, &f->mesh, &plan.steps[0].to), "P@dp");
}

static void too_many_placements_leave_a_direct_plan(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    fixture *f =
        fixture_make(1, 1, (ms_global_tensor){"x", 4, "ijkl", {64, 64, 64, 64}, 2});
    f->mesh = ms_mesh_make(names, (const long[]){2, 2, 2, 2, 2, 2, 2, 2}, 8);
    price_as_pytorch(f, 8);
    ms_redistribute_task task = task_of(f, "S(i)@a S(j)@h", "S(j)@h");
    ms_redistribution plan;
    const char *why;
    assert_true(ms_redistribute(f->cx->arena, &task, &plan, &why));
    assert_false(plan.is_optimal);
    ASSERT_INT(plan.num_steps, 1);
    ASSERT_INT(plan.steps[0].change, MS_CHANGE_ALL_GATHER);
    ASSERT_INT(plan.steps[0].axes, 1);
}

/* Planning ends soon even if split factors cut the tensor into 10^11 index ranges over
 * all ranks. A proof that the plan is optimal with uneven parts would go through all
 * ranges, so the plan does not claim to be optimal. */
static void large_split_factors_end_soon(void **state)
{
    (void)state;
    fixture *f = fixture_make(64, 64, tensor_ab(999999999, 4));
    price_as_pytorch(f, 8);
    ms_redistribute_task task =
        task_of(f, "SS(a,65535)@dp SS(a,65533)@tp", "S(a)@dp S(a)@tp");
    ms_redistribution plan;
    const char *why;
    assert_true(ms_redistribute(f->cx->arena, &task, &plan, &why));
    assert_false(plan.is_optimal);
    ASSERT_TEXT(ms_spec_text(f->cx->arena, &f->mesh, &plan.steps[plan.num_steps - 1].to),
                "S(a)@dp S(a)@tp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pytorchs_prices_of_64_mib_are_met),
        cmocka_unit_test(each_change_is_one_collective_of_known_size),
        cmocka_unit_test(what_no_collective_does_has_a_reason),
        cmocka_unit_test(axes_with_the_same_change_share_a_collective),
        cmocka_unit_test(one_all_reduce_costs_less_than_two),
        cmocka_unit_test(the_axis_that_splits_last_is_gathered_by_itself),
        cmocka_unit_test(parts_that_only_change_places_are_sent),
        cmocka_unit_test(factors_that_are_no_order_are_undone_last_first),
        cmocka_unit_test(uneven_parts_are_padded_to_the_largest),
        cmocka_unit_test(detours_use_the_links_of_a_node),
        cmocka_unit_test(axes_of_one_rank_change_nothing),
        cmocka_unit_test(too_many_placements_leave_a_direct_plan),
        cmocka_unit_test(large_split_factors_end_soon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
