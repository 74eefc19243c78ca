#include "topo/mesh_zoo.h"

#include "tests/test.h"
#include "topo/mesh_derive.h"
#include "topo/mesh_place.h"
#include "topo/mesh_text.h"

static const ms_zoo_choices plain = {.zero = -1, .ep = 1, .ep_generation = 3};

typedef struct zoo_mesh {
    ms_mesh mesh;
    ms_axis_role roles[MS_MAX_AXES];
} zoo_mesh;

static zoo_mesh parse(ms_ctx *cx, const char *text)
{
    zoo_mesh m;
    ASSERT_OK(ms_mesh_parse(cx, text,
                            &(ms_mesh_limits){.num_ranks = 0, .most_ranks = 1 << 20},
                            &m.mesh),
              cx);
    ASSERT_OK(ms_mesh_roles(cx, &m.mesh, m.roles), cx);
    return m;
}

/* ---- names ---- */

static void aliases_stand_for_axes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        ms_axis_role role;
    } cases[] = {
        {"dp", MS_AXIS_DP},          {"ddp", MS_AXIS_DP},
        {"batch", MS_AXIS_DP},       {"fsdp", MS_AXIS_DP_SHARD},
        {"shard", MS_AXIS_DP_SHARD}, {"dp-shard", MS_AXIS_DP_SHARD},
        {"tp", MS_AXIS_TP},          {"replicate", MS_AXIS_DP_REPLICATE},
        {"model", MS_AXIS_TP},       {"sp", MS_AXIS_SP},
        {"pp", MS_AXIS_PP},          {"cp", MS_AXIS_CP},
        {"efsdp", MS_AXIS_EFSDP},    {"ep", MS_AXIS_EP},
        {"Tp", MS_AXIS_OTHER},       {"tpp", MS_AXIS_OTHER},
        {"", MS_AXIS_OTHER},         {"dp_shard_", MS_AXIS_OTHER},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ASSERT_INT(ms_axis_role_find(cases[i].name), cases[i].role);
    ASSERT_TEXT(ms_axis_role_name(MS_AXIS_DP_SHARD), "dp_shard");
    assert_null(ms_axis_role_name(MS_AXIS_OTHER));
    ASSERT_TEXT(ms_axis_role_nearest("replicat"), "replicate");
    for (int role = 1; role < MS_NUM_AXIS_ROLES; role++)
        ASSERT_INT(ms_axis_role_find(ms_axis_role_name((ms_axis_role)role)), role);
}

static void dp_is_what_the_other_axes_leave(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_INT(parse(cx, "dp=2,tp=2").roles[0], MS_AXIS_DP);
    ASSERT_INT(parse(cx, "dp=2,fsdp=2").roles[0], MS_AXIS_DP_REPLICATE);
    ASSERT_INT(parse(cx, "replicate=2,dp=2").roles[1], MS_AXIS_DP_SHARD);
}

static void two_axes_of_one_role_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"fsdp=2,dp_shard=2", "tp=2,model=2", "dp=2,ddp=2",
                                        "dp=2,replicate=2,shard=2",
                                        "dp_shard=2,dp_shard_in_ep=2"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        ms_ctx *cx = test_cx();
        zoo_mesh m;
        ASSERT_OK(ms_mesh_parse(cx, texts[i],
                                &(ms_mesh_limits){.num_ranks = 0, .most_ranks = 1024},
                                &m.mesh),
                  cx);
        ASSERT_INT(ms_mesh_roles(cx, &m.mesh, m.roles), MS_EINPUT);
        ASSERT_INT(cx->num_errors, 1);
    }
}

/* ---- compositions ---- */

static void every_row_of_the_zoo_is_recognised(void **state)
{
    (void)state;
    static const struct {
        const char *mesh;
        ms_zoo_choices choices;
        int row;
        const char *name;
    } cases[] = {
        {"dp=8", {.zero = -1, .ep = 1, .ep_generation = 3}, 1, "DDP"},
        {"dp_shard=8", {.zero = 0, .ep = 1, .ep_generation = 3}, 1, "DDP"},
        {"dp=8", {.zero = 1, .ep = 1, .ep_generation = 3}, 2, "ZeRO-1"},
        {"dp=8", {.zero = 2, .ep = 1, .ep_generation = 3}, 3, "ZeRO-2"},
        {"dp=8", {.zero = 3, .ep = 1, .ep_generation = 3}, 4, "FSDP"},
        {"fsdp=8", {.zero = -1, .ep = 1, .ep_generation = 3}, 4, "FSDP"},
        {"dp_replicate=2,dp_shard=4",
         {.zero = -1, .ep = 1, .ep_generation = 3},
         5,
         "HSDP"},
        {"dp=2,fsdp=4", {.zero = -1, .ep = 1, .ep_generation = 3}, 5, "HSDP"},
        {"replicate=2,shard=4", {.zero = -1, .ep = 1, .ep_generation = 3}, 5, "HSDP"},
        {"dp=2,tp=4", {.zero = -1, .ep = 1, .ep_generation = 3}, 6, "DDP + TP"},
        {"replicate=2,shard=2,tp=4",
         {.zero = 1, .ep = 1, .ep_generation = 3},
         6,
         "replicas of ZeRO-1 + TP"},
        {"batch=2,model=4", {.zero = -1, .ep = 1, .ep_generation = 3}, 6, "DDP + TP"},
        {"dp=2,tp=4",
         {.zero = -1, .sequence_parallel = true, .ep = 1, .ep_generation = 3},
         7,
         "DDP + TP with sequence parallelism"},
        {"dp_shard=2,tp=4", {.zero = -1, .ep = 1, .ep_generation = 3}, 8, "FSDP + TP"},
        {"dp_replicate=2,dp_shard=2,tp=4",
         {.zero = -1, .ep = 1, .ep_generation = 3},
         8,
         "HSDP + TP"},
        {"dp=2,sp=4", {.zero = -1, .ep = 1, .ep_generation = 3}, 9, "DDP + Ulysses"},
        {"dp=2,cp=4", {.zero = -1, .ep = 1, .ep_generation = 3}, 10, "DDP + CP"},
        {"dp=2,cp=4,tp=2",
         {.zero = -1, .ep = 1, .ep_generation = 3},
         11,
         "DDP + CP + TP"},
        {"pp=2,dp=2", {.zero = -1, .ep = 1, .ep_generation = 3}, 12, "PP + DDP"},
        {"dp=2,pp=2,tp=2",
         {.zero = -1, .ep = 1, .ep_generation = 3},
         12,
         "PP + DDP + TP"},
        {"pp=2,dp_replicate=2,dp_shard=2,cp=2,tp=2",
         {.zero = -1, .ep = 1, .ep_generation = 3},
         13,
         "PP + HSDP + CP + TP"},
        {"pp=2,dp_replicate=2,dp_shard_mod_ep=2,dp_shard_in_ep=2,cp=2,tp=2",
         {.zero = -1, .ep = 1, .ep_generation = 3},
         14,
         "PP + HSDP + CP + TP + EP"},
        {"pp=2,dp_shard=2,cp=2,tp=2",
         {.zero = -1, .ep = 4, .ep_generation = 1},
         14,
         "PP + FSDP + CP + TP + EP"},
        {"pp=2,dp_replicate=2,dp_shard=2,cp=2,tp=2",
         {.zero = -1, .ep = 4, .ep_generation = 3},
         15,
         "PP + HSDP + CP + TP + EP"},
        {"tp=8", {.zero = -1, .ep = 1, .ep_generation = 3}, 0, "TP"},
        {"x=8", {.zero = -1, .ep = 1, .ep_generation = 3}, 0, "axes of other names"},
        {"pp=1,tp=1", {.zero = -1, .ep = 1, .ep_generation = 3}, 0, "one rank"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        zoo_mesh m = parse(cx, cases[i].mesh);
        ms_zoo_row row = ms_mesh_strategy(cx->arena, &m.mesh, m.roles, &cases[i].choices);
        if (row.row != cases[i].row)
            fail_msg("%s: row %d, want %d", cases[i].mesh, row.row, cases[i].row);
        ASSERT_TEXT(row.name, cases[i].name);
    }
    for (int i = 0; i < MS_NUM_ZOO_ROWS; i++)
        ASSERT_INT(ms_zoo_rows[i].row, i + 1);
}

static ms_axis_use use_of(const char *mesh, ms_axis_role role, ms_zoo_choices choices)
{
    zoo_mesh m = parse(test_cx(), mesh);
    return ms_axis_use_of(&m.mesh, m.roles, role, &choices);
}

/* Which collectives run along an axis: E. Z. Yang, "The Parallelism Mesh Zoo". */
static void axes_run_their_collectives(void **state)
{
    (void)state;
    ms_zoo_choices c = plain;
    ASSERT_TEXT(use_of("dp=4", MS_AXIS_DP, c).forward, "");
    assert_non_null(strstr(use_of("dp=4", MS_AXIS_DP, c).backward, "all-reduce"));
    ms_axis_use use = use_of("fsdp=4", MS_AXIS_DP_SHARD, c);
    assert_non_null(strstr(use.forward, "all-gather"));
    assert_non_null(strstr(use.backward, "all-gather"));
    assert_non_null(strstr(use.backward, "reduce-scatter"));
    c.zero = 1;
    use = use_of("dp=4", MS_AXIS_DP, c);
    ASSERT_TEXT(use.forward, "");
    assert_non_null(strstr(use.backward, "reduce-scatter"));
    assert_non_null(strstr(use.step, "all-gather"));
    c = plain;
    use = use_of("replicate=2,shard=2", MS_AXIS_DP_REPLICATE, c);
    assert_non_null(strstr(use.backward, "shards of gradients"));
    assert_non_null(strstr(use_of("tp=4", MS_AXIS_TP, c).forward, "all-reduce"));
    c.sequence_parallel = true;
    use = use_of("tp=4", MS_AXIS_TP, c);
    assert_non_null(strstr(use.forward, "reduce-scatter"));
    assert_non_null(strstr(use.step, "norms"));
    assert_non_null(strstr(use_of("dp=2,sp=4", MS_AXIS_SP, c).forward, "all-to-all"));
    assert_non_null(
        strstr(use_of("dp=2,cp=4", MS_AXIS_CP, c).forward, "keys and values"));
    assert_non_null(strstr(use_of("pp=4", MS_AXIS_PP, c).forward, "next stage"));
}

/* ---- derived axes ---- */

static const ms_derived_axis *find(const ms_derived *derived, const char *name)
{
    for (int i = 0; i < derived->num; i++)
        if (strcmp(derived->axes[i].name, name) == 0)
            return &derived->axes[i];
    return NULL;
}

/* The groups of the axis as text: "{0,1} {2,3}". */
static const char *groups_text(ms_ctx *cx, ms_layout layout, long num_ranks)
{
    long *ranks;
    ASSERT_OK(ms_layout_groups(cx, layout, num_ranks, &ranks), cx);
    const char *text = "";
    for (long i = 0; i < num_ranks; i++)
        text = ms_arena_printf(cx->arena, "%s%s%ld%s", text,
                               i % layout.size > 0 ? ","
                               : i == 0            ? "{"
                                                   : " {",
                               ranks[i], i % layout.size == layout.size - 1 ? "}" : "");
    return text;
}

static void expect_groups(const char *mesh, ms_zoo_choices choices, const char *name,
                          const char *want)
{
    ms_ctx *cx = test_cx();
    zoo_mesh m = parse(cx, mesh);
    ms_derived derived;
    ASSERT_OK(ms_mesh_derive(cx, &m.mesh, m.roles, &choices, &derived), cx);
    const ms_derived_axis *axis = find(&derived, name);
    ms_layout layout;
    if (axis != NULL) {
        layout = axis->layout;
    } else {
        int i = ms_mesh_find(&m.mesh, name);
        if (i < 0)
            fail_msg("%s: no axis %s", mesh, name);
        layout = ms_mesh_layout(cx, &m.mesh, m.roles, 1u << m.roles[i]);
    }
    const char *got = groups_text(cx, layout, m.mesh.num_ranks);
    if (strncmp(got, want, strlen(want)) != 0)
        fail_msg("%s: %s has %s, want %s", mesh, name, got, want);
}

/* The mesh of 16 ranks of pytorch/torchtitan torchtitan/distributed/parallel_dims.py,
 * whose expert axes had one layout in July 2025 (commit 01f4e5022, PR 1324) and
 * another in December 2025 (commit 183a0d2e7, PR 1660). */
static const char sixteen[] = "pp=2,dp_replicate=1,dp_shard=2,cp=2,tp=2";

static void torchtitans_axes_have_its_groups(void **state)
{
    (void)state;
    ms_zoo_choices c = {.zero = 3, .ep = 4, .ep_generation = 3};
    expect_groups(sixteen, c, "tp",
                  "{0,1} {2,3} {4,5} {6,7} {8,9} {10,11} {12,13} {14,15}");
    expect_groups(sixteen, c, "cp", "{0,2} {1,3} {4,6} {5,7} {8,10}");
    expect_groups(sixteen, c, "dp_shard", "{0,4} {1,5} {2,6} {3,7} {8,12}");
    expect_groups(sixteen, c, "pp",
                  "{0,8} {1,9} {2,10} {3,11} {4,12} {5,13} {6,14} {7,15}");
    expect_groups(sixteen, c, "fsdp", "{0,2,4,6} {1,3,5,7} {8,10,12,14} {9,11,13,15}");
    expect_groups(sixteen, c, "batch", "{0,4} {1,5} {2,6} {3,7} {8,12}");
    expect_groups(sixteen, c, "loss", "{0,2,4,6} {1,3,5,7} {8,10,12,14} {9,11,13,15}");
}

static void generations_of_ep_take_their_ranks(void **state)
{
    (void)state;
    ms_zoo_choices c = {.zero = 3, .ep = 4, .ep_generation = 3};
    expect_groups(sixteen, c, "ep", "{0,1,2,3} {4,5,6,7} {8,9,10,11} {12,13,14,15}");
    expect_groups(sixteen, c, "efsdp", "{0,4} {1,5} {2,6} {3,7} {8,12}");
    c.ep_generation = 1;
    expect_groups(sixteen, c, "ep", "{0,2,4,6} {1,3,5,7} {8,10,12,14} {9,11,13,15}");
    expect_groups(sixteen, c, "etp", "{0,1} {2,3}");
    expect_groups(sixteen, c, "dp_shard_in_ep", "{0,4} {1,5} {2,6} {3,7} {8,12}");
    /* experts are sharded over dp_shard_mod_ep, which has size 1: groups of one rank */
    expect_groups(sixteen, c, "efsdp", "{0} {1}");
    /* ep 2 takes the cp ranks alone, so experts are sharded over all dp_shard ranks */
    c.ep = 2;
    expect_groups(sixteen, c, "ep", "{0,2} {1,3} {4,6} {5,7}");
    expect_groups(sixteen, c, "efsdp", "{0,4} {1,5} {2,6} {3,7} {8,12}");
    c = (ms_zoo_choices){.zero = 3, .ep = 4, .etp = 1, .ep_generation = 2};
    expect_groups(sixteen, c, "ep", "{0,1,2,3} {4,5,6,7}");
    c.etp = 2;
    expect_groups(sixteen, c, "ep", "{0,2,4,6} {1,3,5,7}");
    /* etp 2: the tp ranks split each expert, so ep takes the cp and dp_shard ranks */
    c.ep_generation = 3;
    expect_groups(sixteen, c, "ep", "{0,2,4,6} {1,3,5,7}");
    c = (ms_zoo_choices){.zero = 3, .ep = 2, .ep_generation = 3};
    expect_groups(sixteen, c, "ep", "{0,1} {2,3}"); /* ep takes the tp ranks first */
    expect_groups(sixteen, c, "efsdp", "{0,2,4,6} {1,3,5,7}");
}

static void one_mesh_serves_experts_too(void **state)
{
    (void)state;
    static const char mesh[] = "pp=2,dp_shard_mod_ep=1,dp_shard_in_ep=2,cp=2,tp=2";
    ms_zoo_choices c = {.zero = 3, .ep = 1, .ep_generation = 3};
    expect_groups(mesh, c, "ep", "{0,2,4,6} {1,3,5,7}");
    expect_groups(mesh, c, "fsdp", "{0,2,4,6} {1,3,5,7}");
    c.etp = 1; /* etp 1: experts are whole, so ep takes the tp ranks, too */
    expect_groups(mesh, c, "ep", "{0,1,2,3,4,5,6,7} {8,9,10,11,12,13,14,15}");
}

static void replicas_of_experts_are_an_axis(void **state)
{
    (void)state;
    ms_zoo_choices c = {.zero = 3, .ep = 2, .ep_generation = 3};
    expect_groups("dp_replicate=2,dp_shard=2,tp=2", c, "edp", "{0,2,4,6} {1,3,5,7}");
}

static const ms_derived_axis *derive(ms_ctx *cx, const char *mesh, ms_zoo_choices choices,
                                     ms_derived *derived, const char *name)
{
    zoo_mesh m = parse(cx, mesh);
    ASSERT_OK(ms_mesh_derive(cx, &m.mesh, m.roles, &choices, derived), cx);
    return find(derived, name);
}

/* A mesh with the axes dp_shard_mod_ep and dp_shard_in_ep tells the generation of its
 * expert axes: 1 where the tp ranks split each expert, 2 with etp 1. */
static void one_mesh_knows_its_generation(void **state)
{
    (void)state;
    static const char mesh[] =
        "pp=2,dp_replicate=2,dp_shard_mod_ep=2,dp_shard_in_ep=2,cp=2,tp=2";
    ms_zoo_choices c = plain;
    ms_ctx *cx = test_cx();
    ms_derived derived;
    ASSERT_INT(derive(cx, mesh, c, &derived, "etp")->layout.size, 2);
    ASSERT_INT(derived.ep_generation, 1);
    expect_groups(mesh, c, "etp", "{0,1} {2,3}");
    expect_groups(mesh, c, "edp", "{0,8,16,24} {1,9,17,25}");
    c.etp = 1;
    assert_null(derive(cx, mesh, c, &derived, "etp"));
    ASSERT_INT(derived.ep_generation, 2);
    assert_null(derive(cx, "dp_shard=2,tp=2", plain, &derived, "ep"));
    ASSERT_INT(derived.ep_generation, 0);
}

/* A mesh for expert layers derives no axes of dense layers: cp and tp are hidden in
 * efsdp and ep, so it does not say which ranks hold different sequences. */
static void axes_of_experts_derive_nothing_dense(void **state)
{
    (void)state;
    static const char sparse[] = "pp=2,dp_replicate=2,efsdp=2,ep=4";
    ms_ctx *cx = test_cx();
    ms_derived derived;
    assert_null(derive(cx, sparse, plain, &derived, "batch"));
    assert_null(derive(cx, sparse, plain, &derived, "loss"));
    assert_null(derive(cx, "dp=2,ep=8", plain, &derived, "loss"));
    expect_groups(sparse, plain, "edp", "{0,4,8,12} {1,5,9,13}");
}

/* The collectives along the sharding axes fsdp and efsdp depend on the ZeRO stage. */
static void sharded_axes_tell_what_zero_makes_of_them(void **state)
{
    (void)state;
    static const char *const of_dense[] = {"all-reduce", "updated", "updated",
                                           "all-gather of parameters"};
    static const char *const of_experts[] = {"all-reduce", "updated", "updated",
                                             "all-gather of expert"};
    ms_ctx *cx = test_cx();
    ms_derived derived;
    for (int zero = 0; zero <= 3; zero++) {
        ms_zoo_choices c = {.zero = zero, .ep = 2, .ep_generation = 3};
        static const char mesh[] = "dp_shard=4,tp=2";
        const char *dense = derive(cx, mesh, c, &derived, "fsdp")->used_for;
        const char *experts = derive(cx, mesh, c, &derived, "efsdp")->used_for;
        assert_non_null(strstr(dense, of_dense[zero]));
        assert_non_null(strstr(experts, of_experts[zero]));
        ms_axis_use use = use_of(mesh, MS_AXIS_EFSDP, c);
        ASSERT_INT(use.forward[0] != '\0', zero == 3);
        ASSERT_INT(strstr(use.backward, "all-reduce") != NULL, zero == 0);
    }
    ms_zoo_choices c = {.zero = 3, .ep = 1, .ep_generation = 3};
    assert_non_null(derive(cx, "dp_replicate=2,cp=2", c, &derived, "fsdp"));
    assert_null(derive(cx, "dp_replicate=2,tp=2", c, &derived, "fsdp"));
}

static void sizes_that_do_not_divide_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *message;
        ms_zoo_choices choices;
    } cases[] = {
        {sixteen,
         "ep 3 does not divide dp_shard 2 x cp 2 x tp 2 = 8 ranks",
         {.ep = 3, .ep_generation = 3}},
        {sixteen, "ep 16 does not divide", {.ep = 16, .ep_generation = 3}},
        {sixteen,
         "etp is 4, must be 1 or tp (2)",
         {.ep = 2, .etp = 4, .ep_generation = 3}},
        {sixteen,
         "ep 8 does not divide dp_shard 2 x cp 2 = 4",
         {.ep = 8, .etp = 2, .ep_generation = 3}},
        {"dp_shard=4,cp=3,tp=2", "no multiple of 3", {.ep = 2, .ep_generation = 1}},
        {"dp_shard=4,cp=3,tp=2",
         "no multiple of 6",
         {.ep = 3, .etp = 1, .ep_generation = 2}},
        {sixteen, "etp must be tp (2), not 1", {.ep = 4, .etp = 1, .ep_generation = 1}},
        {"cp=2,dp_shard=2,tp=2", "in this order of axes", {.ep = 2, .ep_generation = 1}},
        {"dp_shard=4,pp=2,tp=3", "unevenly in this order", {.ep = 2, .ep_generation = 3}},
        {"a=2,b=4", "needs an axis dp_shard, cp or tp", {.ep = 2, .ep_generation = 3}},
        {"ep=4,tp=2",
         "ep is 2, but the mesh has an axis ep",
         {.ep = 2, .ep_generation = 3}},
        {"dp_shard_mod_ep=2,dp_shard_in_ep=2,cp=2",
         "ep is 8, but dp_shard_in_ep 2 x cp 2 = 4",
         {.ep = 8, .ep_generation = 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        zoo_mesh m = parse(cx, cases[i].mesh);
        ms_derived derived;
        ASSERT_INT(ms_mesh_derive(cx, &m.mesh, m.roles, &cases[i].choices, &derived),
                   MS_EINPUT);
        const char *got = test_messages(cx);
        if (strstr(got, cases[i].message) == NULL)
            fail_msg("%s: got \"%s\", want \"%s\"", cases[i].mesh, got, cases[i].message);
    }
}

static void other_names_derive_nothing(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    zoo_mesh m = parse(cx, "x=2,y=3,z=4");
    ms_derived derived;
    ASSERT_OK(ms_mesh_derive(cx, &m.mesh, m.roles, &plain, &derived), cx);
    ASSERT_INT(derived.num, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aliases_stand_for_axes),
        cmocka_unit_test(dp_is_what_the_other_axes_leave),
        cmocka_unit_test(two_axes_of_one_role_are_refused),
        cmocka_unit_test(every_row_of_the_zoo_is_recognised),
        cmocka_unit_test(axes_run_their_collectives),
        cmocka_unit_test(torchtitans_axes_have_its_groups),
        cmocka_unit_test(generations_of_ep_take_their_ranks),
        cmocka_unit_test(one_mesh_serves_experts_too),
        cmocka_unit_test(replicas_of_experts_are_an_axis),
        cmocka_unit_test(one_mesh_knows_its_generation),
        cmocka_unit_test(axes_of_experts_derive_nothing_dense),
        cmocka_unit_test(sharded_axes_tell_what_zero_makes_of_them),
        cmocka_unit_test(sizes_that_do_not_divide_are_refused),
        cmocka_unit_test(other_names_derive_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
