/* The report on a mesh: the keys of JSON format meshsim.mesh/1 that scripts read, and
 * the printed groups. */
#include "cli/report/mesh_report.h"

#include "tests/support/json_values.h"
#include "tests/test.h"
#include "topo/mesh_text.h"

static ms_mesh_view *view_of(ms_ctx *cx, const char *text, ms_zoo_choices choices)
{
    const ms_cluster *cluster;
    ms_mesh mesh;
    ms_mesh_view *view = MS_NEW(cx->arena, ms_mesh_view);
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &cluster), cx);
    ASSERT_OK(ms_mesh_parse(cx, text,
                            &(ms_mesh_limits){.num_ranks = 0, .most_ranks = 1 << 20},
                            &mesh),
              cx);
    ASSERT_OK(ms_mesh_view_make(cx, &mesh, &choices, cluster, view), cx);
    return view;
}

static ms_jval json_of(ms_ctx *cx, const ms_mesh_view *view, ms_jdoc **doc)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_jout json = ms_jout_open(file);
    ms_jout_begin_object(&json);
    ms_mesh_write_fields(&json, cx, view);
    ms_jout_end_object(&json);
    ms_jout_close(&json);
    return test_json(cx, file, doc);
}

static long integer_of(ms_ctx *cx, ms_jval value)
{
    long integer;
    ASSERT_OK(ms_json_integer(cx, value, 0, 1 << 20, &integer), cx);
    return integer;
}

static ms_jval axis_of(ms_ctx *cx, ms_jval list, const char *name)
{
    for (int i = 0; i < ms_json_length(list); i++) {
        ms_jval axis = ms_json_element(cx, list, i);
        if (strcmp(test_text(cx, axis, "axis"), name) == 0)
            return axis;
    }
    fail_msg("no axis %s", name);
    return list;
}

/* want: size, stride and ranks per node of the axis */
static void expect_axis(ms_ctx *cx, ms_jval axis, const long *want, const char *layout,
                        const char *tier)
{
    ASSERT_INT(integer_of(cx, test_member(cx, axis, "size")), want[0]);
    ASSERT_INT(integer_of(cx, test_member(cx, axis, "stride")), want[1]);
    ASSERT_INT(integer_of(cx, test_member(cx, axis, "ranks_per_node")), want[2]);
    ASSERT_TEXT(test_text(cx, axis, "layout"), layout);
    ASSERT_TEXT(test_text(cx, axis, "tier"), tier);
    ms_jval groups = test_member(cx, axis, "groups");
    ms_jval first = ms_json_element(cx, groups, 0);
    ASSERT_INT(ms_json_length(groups) * ms_json_length(first), 16);
    for (int i = 0; i < ms_json_length(first); i++)
        ASSERT_INT(integer_of(cx, ms_json_element(cx, first, i)), i * want[1]);
}

static void axes_and_derived_axes_have_one_form(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_mesh_view *view =
        view_of(cx, "pp=2,dp_shard=2,cp=2,tp=2",
                (ms_zoo_choices){.zero = -1, .ep = 4, .ep_generation = 3});
    ms_jdoc *doc;
    ms_jval root = json_of(cx, view, &doc);
    ASSERT_TEXT(test_text(cx, root, "schema"), "meshsim.mesh/1");
    ASSERT_TEXT(test_text(cx, root, "layout"), "(2,2,2,2):(8,4,2,1)");
    ms_jval axes = test_member(cx, root, "axes"),
            derived = test_member(cx, root, "derived");
    ASSERT_INT(ms_json_length(axes), 4);
    expect_axis(cx, axis_of(cx, axes, "pp"), (const long[]){2, 8, 1}, "2:8", "leaf");
    expect_axis(cx, axis_of(cx, axes, "tp"), (const long[]){2, 1, 2}, "2:1", "nvlink");
    expect_axis(cx, axis_of(cx, derived, "fsdp"), (const long[]){4, 2, 4}, "(2,2):(4,2)",
                "nvlink");
    expect_axis(cx, axis_of(cx, derived, "loss"), (const long[]){4, 2, 4}, "(2,2):(4,2)",
                "nvlink");
    expect_axis(cx, axis_of(cx, derived, "dp_cp"), (const long[]){4, 2, 4}, "(2,2):(4,2)",
                "nvlink");
    expect_axis(cx, axis_of(cx, derived, "ep"), (const long[]){4, 1, 4}, "4:1", "nvlink");
    expect_axis(cx, axis_of(cx, derived, "efsdp"), (const long[]){2, 4, 2}, "2:4",
                "nvlink");
    ASSERT_TEXT(test_text(cx, axis_of(cx, derived, "dp_cp"), "same_as"), "loss");
    assert_true(
        ms_json_is_null(test_member(cx, axis_of(cx, axes, "tp"), "nics_per_group")));
    ms_json_close(doc);
}

static void names_are_kept_and_explained(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_mesh_view *view =
        view_of(cx, "dp=2,fsdp=4,model=2,mine=1",
                (ms_zoo_choices){.zero = -1, .ep = 1, .ep_generation = 3});
    ms_jdoc *doc;
    ms_jval root = json_of(cx, view, &doc), axes = test_member(cx, root, "axes");
    ASSERT_TEXT(test_text(cx, axis_of(cx, axes, "dp"), "stands_for"), "dp_replicate");
    ASSERT_TEXT(test_text(cx, axis_of(cx, axes, "model"), "stands_for"), "tp");
    assert_true(
        ms_json_is_null(test_member(cx, axis_of(cx, axes, "mine"), "stands_for")));
    ms_json_close(doc);
    const ms_axis_view *axis;
    ASSERT_OK(ms_mesh_view_find(cx, view, "tp", "--groups", &axis), cx);
    ASSERT_TEXT(axis->name, "model");
    ASSERT_OK(ms_mesh_view_find(cx, view, "dp_shard_cp", "--groups", &axis), cx);
    ASSERT_TEXT(axis->name, "fsdp");
    ASSERT_INT(ms_mesh_view_find(cx, view, "modell", "--groups", &axis), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), "did you mean model?"));
}

/* Every rank is printed in its group, however long the groups are. */
static void all_groups_are_listed(void **state)
{
    (void)state;
    static const char *const meshes[] = {"dp=3,tp=100", "dp=100,tp=3", "dp=1,tp=1"};
    for (size_t i = 0; i < sizeof meshes / sizeof *meshes; i++) {
        ms_ctx *cx = test_cx();
        ms_mesh_view *view = view_of(
            cx, meshes[i], (ms_zoo_choices){.zero = -1, .ep = 1, .ep_generation = 3});
        FILE *file = tmpfile();
        assert_non_null(file);
        ms_mesh_print_groups(file, cx, view, &view->axes[1]);
        const char *text = strchr(test_read_back(cx->arena, file), '{');
        for (long rank = 0; rank < view->mesh.num_ranks; rank++) {
            text += strcspn(text, "0123456789");
            char *end;
            /* groups of tp, the innermost axis, list ranks in ascending order */
            ASSERT_INT(strtol(text, &end, 10), rank);
            text = end;
        }
    }
}

static void a_small_cluster_is_too_small(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cluster cluster = {.name = "box", .max_gpus = 1, .num_levels = 1};
    ms_mesh mesh = ms_mesh_make((const char *const[]){"tp"}, (const long[]){2}, 1);
    ms_mesh_view view;
    ms_zoo_choices choices = {.zero = -1, .ep = 1, .ep_generation = 3};
    ASSERT_INT(ms_mesh_view_make(cx, &mesh, &choices, &cluster, &view), MS_EINPUT);
}

static long expert_number(const char *mesh, const char *key)
{
    ms_ctx *cx = test_cx();
    ms_zoo_choices choices = {.zero = -1, .ep = 1, .ep_generation = 3};
    ms_jdoc *doc;
    ms_jval root = json_of(cx, view_of(cx, mesh, choices), &doc);
    long number = integer_of(cx, test_member(cx, test_member(cx, root, "experts"), key));
    ms_json_close(doc);
    return number;
}

/* The report reads ep, etp and the generation of expert axes, without --ep, off a mesh
 * that itself has expert axes (dp_shard_in_ep, or efsdp, ep and etp). */
static void axes_say_what_experts_take(void **state)
{
    (void)state;
    static const char one[] = "dp_shard_mod_ep=2,dp_shard_in_ep=2,cp=2,tp=2";
    static const char sparse[] = "efsdp=2,ep=4,etp=2";
    ASSERT_INT(expert_number(one, "ep"), 4);
    ASSERT_INT(expert_number(one, "etp"), 2);
    ASSERT_INT(expert_number(one, "generation"), 1);
    ASSERT_INT(expert_number(sparse, "ep"), 4);
    ASSERT_INT(expert_number(sparse, "etp"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_say_what_experts_take),
        cmocka_unit_test(axes_and_derived_axes_have_one_form),
        cmocka_unit_test(names_are_kept_and_explained),
        cmocka_unit_test(all_groups_are_listed),
        cmocka_unit_test(a_small_cluster_is_too_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
