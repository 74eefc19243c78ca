/* Every mesh of up to 64 ranks: the groups of every axis, and of every axis derived
 * for experts or sharding, hold each rank once, whatever the order of axes and
 * wherever experts take their ranks. */
#include "base/rng.h"
#include "costmodel/plan/plan.h"
#include "tests/test.h"
#include "topo/mesh_derive.h"
#include "topo/mesh_place.h"

#define MAX_RANKS 64

typedef struct counts {
    long meshes, axes, refused, experts;
} counts;

/* The groups of the layout hold each rank once; for an axis of the mesh, ranks of a
 * group agree on all other coordinates. */
static void expect_partition(ms_ctx *cx, ms_layout layout, long num_ranks,
                             const ms_mesh_axis *axis)
{
    long *ranks;
    bool seen[MAX_RANKS] = {false};
    ASSERT_OK(ms_layout_groups(cx, layout, num_ranks, &ranks), cx);
    for (long i = 0; i < num_ranks; i++) {
        assert_true(ranks[i] >= 0 && ranks[i] < num_ranks);
        assert_false(seen[ranks[i]]);
        seen[ranks[i]] = true;
        if (axis != NULL && i % axis->size > 0)
            ASSERT_INT(ranks[i], ranks[i - 1] + axis->stride);
        if (i % layout.size == 0 && i > 0)
            assert_true(ranks[i] > ranks[i - layout.size]);
    }
    ms_group group = ms_layout_group(cx->arena, layout);
    ms_mesh mesh = {.num_ranks = num_ranks};
    long same[MAX_RANKS];
    ms_mesh_group_ranks(&mesh, &group, ranks[0], same);
    for (long i = 0; i < layout.size; i++)
        ASSERT_INT(same[i], ranks[i]);
}

static void check_axes(ms_ctx *cx, const ms_mesh *mesh, counts *count)
{
    for (int i = 0; i < mesh->num_axes; i++) {
        const ms_mesh_axis *axis = &mesh->axes[i];
        expect_partition(cx, ms_layout_make(MS_LEXICOGRAPHIC, axis->size, axis->stride),
                         mesh->num_ranks, axis);
        count->axes++;
    }
}

/* Checks the axes derived for one choice of expert parallelism. False: the choice was
 * refused, with an error message. */
static bool check_derived(ms_ctx *cx, const ms_mesh *mesh, const ms_zoo_choices *choices,
                          counts *count)
{
    ms_axis_role roles[MS_MAX_AXES];
    ms_derived derived;
    ASSERT_OK(ms_mesh_roles(cx, mesh, roles), cx);
    ms_ctx scratch = {.arena = cx->arena};
    if (ms_mesh_derive(&scratch, mesh, roles, choices, &derived) != MS_OK) {
        assert_true(scratch.num_errors > 0);
        count->refused++;
        return false;
    }
    long ep = 1, efsdp = 1;
    for (int i = 0; i < derived.num; i++) {
        const ms_derived_axis *axis = &derived.axes[i];
        expect_partition(cx, axis->layout, mesh->num_ranks, NULL);
        ep = axis->role == MS_AXIS_EP ? axis->layout.size : ep;
        efsdp = axis->role == MS_AXIS_EFSDP ? axis->layout.size : efsdp;
        count->axes++;
    }
    if (choices->ep > 1) {
        ASSERT_INT(ep, choices->ep);
        assert_true(mesh->num_ranks % (ep * efsdp) == 0);
        count->experts++;
    }
    return true;
}

/* In the default axis order, deriving expert axes of generation 3 for `ep` is not
 * refused, and gives the same groups as ms_plan_expert_mesh. */
static void compare_with_plan(ms_ctx *cx, const ms_mesh *mesh, long ep)
{
    ms_plan plan = ms_plan_default(mesh->num_ranks);
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        plan.size[axis] = mesh->axes[axis].size;
    plan.ep = ep;
    ms_mesh sparse = ms_plan_expert_mesh(&plan);
    ms_axis_role roles[MS_MAX_AXES];
    ms_derived derived;
    ms_zoo_choices choices = {.zero = 3, .ep = ep, .ep_generation = 3};
    ASSERT_OK(ms_mesh_roles(cx, mesh, roles), cx);
    ASSERT_OK(ms_mesh_derive(cx, mesh, roles, &choices, &derived), cx);
    for (int i = 0; i < derived.num; i++) {
        int axis = ms_mesh_find(&sparse, derived.axes[i].name);
        if (axis < 0)
            continue;
        ms_group want = ms_mesh_group(&sparse, &axis, 1);
        ms_group got = ms_layout_group(cx->arena, derived.axes[i].layout);
        ASSERT_INT(got.size, want.size);
        ASSERT_INT(got.num_modes, want.num_modes);
        if (got.num_modes == 1)
            ASSERT_INT(got.modes[0].stride, want.modes[0].stride);
    }
}

static void check_experts(ms_ctx *cx, const ms_mesh *mesh, bool default_order,
                          counts *count)
{
    long shared = 1;
    for (int i = 0; i < mesh->num_axes; i++)
        if (strcmp(mesh->axes[i].name, "pp") != 0 &&
            strcmp(mesh->axes[i].name, "dp_replicate") != 0)
            shared *= mesh->axes[i].size;
    for (long ep = 2; ep <= shared; ep++) {
        if (shared % ep != 0)
            continue;
        for (int generation = 1; generation <= 3; generation++) {
            ms_zoo_choices choices = {.zero = 3, .ep = ep, .ep_generation = generation};
            bool legal = check_derived(cx, mesh, &choices, count);
            if (default_order && generation == 3)
                assert_true(legal);
        }
        if (default_order)
            compare_with_plan(cx, mesh, ep);
    }
}

static void shuffle(ms_rng *rng, const char **names, long *sizes)
{
    for (int i = MS_NUM_PLAN_AXES - 1; i > 0; i--) {
        int k = (int)ms_rng_below(rng, (uint64_t)i + 1);
        const char *name = names[i];
        long size = sizes[i];
        names[i] = names[k];
        sizes[i] = sizes[k];
        names[k] = name;
        sizes[k] = size;
    }
}

static void check_mesh(ms_ctx *cx, ms_rng *rng, const long *sizes, counts *count)
{
    const char *names[MS_NUM_PLAN_AXES];
    long permuted[MS_NUM_PLAN_AXES];
    memcpy(permuted, sizes, sizeof permuted);
    memcpy(names, ms_plan_axis_names, sizeof names);
    for (int order = 0; order < 3; order++) {
        ms_arena_mark mark = ms_arena_save(cx->arena);
        ms_mesh mesh = ms_mesh_make(names, permuted, MS_NUM_PLAN_AXES);
        ms_zoo_choices dense = {.zero = 3, .ep = 1, .ep_generation = 3};
        check_axes(cx, &mesh, count);
        assert_true(check_derived(cx, &mesh, &dense, count));
        check_experts(cx, &mesh, order == 0, count);
        count->meshes++;
        ms_arena_rewind(cx->arena, mark);
        shuffle(rng, names, permuted);
    }
}

static void factorise(ms_ctx *cx, ms_rng *rng, long *sizes, int axis, long rest,
                      counts *count)
{
    if (axis == MS_NUM_PLAN_AXES - 1) {
        sizes[axis] = rest;
        check_mesh(cx, rng, sizes, count);
        return;
    }
    for (long size = 1; size <= rest; size++)
        if (rest % size == 0) {
            sizes[axis] = size;
            factorise(cx, rng, sizes, axis + 1, rest / size, count);
        }
}

static void groups_of_every_mesh_hold_each_rank_once(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rng rng = ms_rng_seed(20);
    counts count = {0};
    long sizes[MS_NUM_PLAN_AXES];
    for (long num_ranks = 1; num_ranks <= MAX_RANKS; num_ranks++)
        factorise(cx, &rng, sizes, 0, num_ranks, &count);
    assert_true(count.meshes > 3 * 1000);
    assert_true(count.experts > 10000 && count.refused > 1000);
    printf("%ld meshes, %ld axes, %ld with experts, %ld refused\n", count.meshes,
           count.axes, count.experts, count.refused);
}

/* Meshes of up to eight axes whose names mean nothing to the program have groups, too. */
static void any_names_have_groups(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rng rng = ms_rng_seed(21);
    static const char *const names[] = {"u", "v", "w", "x", "y", "z", "red", "blue"};
    for (int round = 0; round < 2000; round++) {
        ms_arena_mark mark = ms_arena_save(cx->arena);
        long sizes[MS_MAX_AXES], rest = 1 + (long)ms_rng_below(&rng, MAX_RANKS);
        int num_axes = 1 + (int)ms_rng_below(&rng, MS_MAX_AXES);
        for (int i = 0; i < num_axes; i++) {
            sizes[i] = 1 + (long)ms_rng_below(&rng, 4);
            sizes[i] = rest / sizes[i] < 1 ? 1 : sizes[i];
            rest /= sizes[i];
        }
        ms_mesh mesh = ms_mesh_make(names, sizes, num_axes);
        counts count = {0};
        ms_zoo_choices dense = {.zero = -1, .ep = 1, .ep_generation = 3};
        check_axes(cx, &mesh, &count);
        assert_true(check_derived(cx, &mesh, &dense, &count));
        ASSERT_INT(count.axes, num_axes); /* only the mesh's own axes: none was derived */
        ms_arena_rewind(cx->arena, mark);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_of_every_mesh_hold_each_rank_once),
        cmocka_unit_test(any_names_have_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
