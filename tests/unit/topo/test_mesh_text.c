#include "topo/mesh_text.h"

#include "tests/test.h"

static ms_mesh parse(const char *text, long num_ranks)
{
    ms_ctx *cx = test_cx();
    ms_mesh mesh;
    ASSERT_OK(
        ms_mesh_parse(cx, text,
                      &(ms_mesh_limits){.num_ranks = num_ranks, .most_ranks = 1 << 20},
                      &mesh),
        cx);
    return mesh;
}

static void expect_refusal(const char *text, long num_ranks, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_mesh mesh;
    ASSERT_INT(
        ms_mesh_parse(cx, text,
                      &(ms_mesh_limits){.num_ranks = num_ranks, .most_ranks = 1 << 20},
                      &mesh),
        MS_EINPUT);
    const char *got = test_messages(cx);
    if (strstr(got, message) == NULL)
        fail_msg("%s: got \"%s\", want \"%s\"", text, got, message);
}

static void axes_are_read_outer_to_inner(void **state)
{
    (void)state;
    ms_mesh mesh = parse("pp=2,my-axis_1=3 , tp = 4", 0);
    ASSERT_INT(mesh.num_axes, 3);
    ASSERT_INT(mesh.num_ranks, 24);
    ASSERT_TEXT(mesh.axes[0].name, "pp");
    ASSERT_TEXT(mesh.axes[1].name, "my-axis_1");
    ASSERT_TEXT(mesh.axes[2].name, "tp");
    ASSERT_INT(mesh.axes[0].stride, 12);
    ASSERT_INT(mesh.axes[1].stride, 4);
    ASSERT_INT(mesh.axes[2].stride, 1);
    ASSERT_TEXT(ms_mesh_text(test_cx()->arena, &mesh), "pp 2 x my-axis_1 3 x tp 4");
    ASSERT_INT(parse("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1", 1).num_axes, MS_MAX_AXES);
}

static void one_axis_takes_the_rest(void **state)
{
    (void)state;
    ASSERT_INT(parse("pp=2,dp_shard=-1,tp=8", 64).axes[1].size, 4);
    ASSERT_INT(parse("dp=-1", 1).axes[0].size, 1);
    expect_refusal("dp=-1", 0, "--gpus, which is not given");
    expect_refusal("dp=-1,tp=-1", 8, "the rest twice: dp=-1 and tp=-1");
    expect_refusal("dp=-1,tp=8", 60, "--gpus 56 or --gpus 64");
    expect_refusal("dp=-1,tp=8", 4, "at least --gpus 8");
}

static void what_is_no_mesh_is_refused(void **state)
{
    (void)state;
    expect_refusal("", 0, "an axis is missing");
    expect_refusal("pp=2,", 0, "an axis is missing");
    expect_refusal(",pp=2", 0, "an axis is missing");
    expect_refusal("pp", 0, "\"pp\" is no axis with a size");
    expect_refusal("=2", 0, "names an axis \"\"");
    expect_refusal("2pp=2", 0, "names an axis \"2pp\"");
    expect_refusal("p p=2", 0, "names an axis \"p p\"");
    expect_refusal("an_axis_with_more_than_32_letters=2", 0, "at most 32 characters");
    expect_refusal("pp=", 0, "the axis pp the size \"\"");
    expect_refusal("pp=0", 0, "the size \"0\"");
    expect_refusal("pp=-2", 0, "the size \"-2\"");
    expect_refusal("pp=2.0", 0, "the size \"2.0\"");
    expect_refusal("pp=0x10", 0, "the size \"0x10\"");
    expect_refusal("pp=99999999999999999999", 0, "the size \"99999999999999999999\"");
    expect_refusal("pp=2,tp=4,pp=2", 0, "names the axis pp twice");
    expect_refusal("a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1", 0, "more than 8 axes");
}

static void the_product_must_be_the_ranks(void **state)
{
    (void)state;
    expect_refusal("pp=2,tp=4", 16, "= 8 ranks, but --gpus is 16");
    expect_refusal("a=1048576,b=2", 0, "more than 1048576 ranks");
    expect_refusal("a=4611686018427387904,b=4611686018427387904", 0, "more than 1048576");
    ASSERT_INT(parse("a=1048576", 0).num_ranks, 1048576);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(axes_are_read_outer_to_inner),
        cmocka_unit_test(one_axis_takes_the_rest),
        cmocka_unit_test(what_is_no_mesh_is_refused),
        cmocka_unit_test(the_product_must_be_the_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
