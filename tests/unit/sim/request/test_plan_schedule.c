/* Plans whose pipeline schedule comes from a file, and plans with a memory limit:
 * flags, JSON, refusals, and that a schedule from a file predicts the same as the
 * built-in schedule that wrote it. */
#include "tests/test.h"

#include "base/paths.h"
#include "cli/options/plan_command.h"
#include "costmodel/schedule/schedule_csv.h"
#include "sim/request/plan_options.h"
#include "sim/step/prediction.h"

#define MAX_ARGUMENTS 24
/* ZB-V for 2 ranks and 4 micro-batches */
#define ZB_V     MS_SOURCE_DIR "/tests/data/schedules/zb_v.csv"
#define DEADLOCK MS_SOURCE_DIR "/tests/data/schedules/deadlock.csv"
#define USUAL    "--model llama-3.2-1b --pp 2 --dp-shard 2 --seq 1k --zero 1 "

static ms_status plan_of(ms_ctx *cx, const char *line, ms_plan *out)
{
    ms_plan_options opts = {0};
    char *argv[MAX_ARGUMENTS];
    int argc = 0;
    for (char *rest = ms_arena_strdup(cx->arena, line); *rest != '\0';) {
        size_t length = strcspn(rest, " ");
        argv[argc++] = ms_arena_strndup(cx->arena, rest, length);
        rest += length + (rest[length] == ' ');
    }
    ms_option_set set = {"plan", ms_plan_option_table(), &opts};
    ms_words words;
    MS_TRY(ms_options_parse(cx, &set, 1, argc, argv, &words));
    MS_TRY(ms_plan_from_options(cx, &opts, out));
    ms_workload *workload;
    MS_TRY(ms_workload_open(cx, out, &workload));
    ms_status status = ms_plan_check(cx, out, workload->model, MS_NOWHERE);
    ms_workload_close(workload);
    return status;
}

static ms_plan plan_ok(ms_ctx *cx, const char *line)
{
    ms_plan plan;
    ASSERT_OK(plan_of(cx, line, &plan), cx);
    return plan;
}

/* Creates a temporary file with the given ending; the caller closes and removes it. */
static const char *open_file(ms_ctx *cx, const char *ending, FILE **file)
{
    char *path = ms_arena_strdup(cx->arena, "/tmp/meshsim-test-schedule-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    *file = fdopen(descriptor, "w");
    assert_non_null(*file);
    const char *named = ms_arena_printf(cx->arena, "%s%s", path, ending);
    ASSERT_INT(rename(path, named), 0);
    return named;
}

static const char *json_of(ms_ctx *cx, const ms_plan *plan)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_jout out = ms_jout_open(file);
    ms_plan_write_json(&out, plan);
    ms_jout_close(&out);
    return test_read_back(cx->arena, file);
}

static ms_status read_json(ms_ctx *cx, const char *text, ms_plan *out)
{
    ms_jdoc *doc;
    ms_jval root;
    MS_TRY(ms_json_parse(cx, "plan.json", text, strlen(text), &doc, &root));
    ms_status status = ms_plan_read(cx, root, out);
    ms_json_close(doc);
    return status;
}

static void check_read_back(ms_ctx *cx, const ms_plan *plan)
{
    ms_plan again;
    ASSERT_OK(read_json(cx, json_of(cx, plan), &again), cx);
    assert_true(ms_plan_equal(plan, &again));
    ASSERT_INT(again.schedule_table != NULL, plan->schedule == MS_CUSTOM);
    again = plan_ok(cx, ms_plan_command_text(cx->arena, plan));
    assert_true(ms_plan_equal(plan, &again));
}

static void a_file_is_a_schedule(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_ok(cx, USUAL "--global-batch 8 --schedule " ZB_V);
    ASSERT_INT(plan.schedule, MS_CUSTOM);
    ASSERT_INT(plan.virtual_stages, 2);
    ASSERT_TEXT(plan.schedule_file, ZB_V);
    assert_non_null(strstr(ms_plan_text(cx->arena, &plan), ", " ZB_V ","));
    check_read_back(cx, &plan);
    ms_plan other = plan;
    ms_plan_set_schedule(&other, MS_ZB_V);
    assert_false(ms_plan_equal(&plan, &other));
    assert_null(ms_plan_shape(&other).table);
}

static double step_s(ms_ctx *cx, const ms_plan *plan)
{
    ms_workload *workload;
    ms_prediction prediction;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_predict(cx, workload, plan, &prediction), cx);
    ms_workload_close(workload);
    return prediction.step_s;
}

/* A schedule in which each stage is on one rank, written to a file and read from it,
 * predicts the same time, to the last bit, and the same memory. */
static void a_file_predicts_like_its_schedule(void **state)
{
    (void)state;
    static const char *const names[] = {
        "gpipe", "1f1b", "zb-h1", "zb-h2", "interleaved", "zb-v", "dualpipev",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ms_ctx *cx = test_cx();
        ms_plan made = plan_ok(cx, ms_arena_printf(cx->arena,
                                                   USUAL "--global-batch 12 "
                                                         "--layers-per-stage %s "
                                                         "--schedule %s",
                                                   i < 4 ? "9,7" : "3,5,4,4", names[i]));
        FILE *file;
        const char *path = open_file(cx, ".csv", &file);
        ms_schedule_shape shape = ms_plan_shape(&made);
        ms_schedule_csv_write(file, ms_schedule_make(cx->arena, &shape));
        ASSERT_INT(fclose(file), 0);
        ms_plan read = made;
        ASSERT_OK(ms_plan_load_schedule(cx, path, &read), cx);
        ASSERT_INT(remove(path), 0);
        ASSERT_INT(read.virtual_stages, made.virtual_stages);
        ASSERT_NEAR(step_s(cx, &read), step_s(cx, &made), 0.0);
    }
}

static void check_refused(const char *line, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_plan plan;
    assert_true(plan_of(cx, line, &plan) != MS_OK);
    const char *messages = test_messages(cx);
    if (strstr(messages, message) == NULL)
        fail_msg("%s\nlacks \"%s\":\n%s", line, message, messages);
}

static void files_that_do_not_match_are_refused(void **state)
{
    (void)state;
    check_refused(USUAL "--global-batch 16 --schedule " ZB_V,
                  "has 4 micro-batches, but the plan has 8");
    check_refused(USUAL "--global-batch 16 --schedule " ZB_V,
                  "a global batch of 8 makes");
    check_refused(USUAL "--global-batch 8 --virtual-stages 1 --schedule " ZB_V,
                  "has 2 stages on each rank, but virtual_stages is 1");
    check_refused("--model llama-3.2-1b --pp 4 --global-batch 4 --schedule " ZB_V,
                  "has rows for 2 ranks, but pp is 4");
    check_refused(USUAL "--global-batch 8 --group 2 --schedule " ZB_V,
                  "only interleaved schedules have a micro-batch group");
    check_refused(USUAL "--global-batch 8 --schedule " DEADLOCK, "deadlock.csv");
    check_refused(USUAL "--global-batch 8 --schedule no_such.csv", "no_such.csv");
}

/* A relative path to a schedule in a plan file is looked for beside the plan file
 * first, and otherwise in the working folder. */
static void a_path_in_a_plan_is_beside_the_plan(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_ok(cx, USUAL "--global-batch 8 --schedule " ZB_V);
    FILE *csv, *file;
    const char *schedule = open_file(cx, ".csv", &csv);
    const ms_schedule_shape shape = ms_plan_shape(&plan);
    ms_schedule_csv_write(csv, ms_schedule_make(cx->arena, &shape));
    ASSERT_INT(fclose(csv), 0);
    plan.schedule_file = strrchr(schedule, '/') + 1;
    const char *path = open_file(cx, ".json", &file);
    fputs(json_of(cx, &plan), file);
    ASSERT_INT(fclose(file), 0);
    ms_plan read = plan_ok(cx, ms_arena_printf(cx->arena, "--plan %s", path));
    ASSERT_TEXT(read.schedule_file, schedule);
    ASSERT_INT(read.schedule_table->num_microbatches, 4);
    ASSERT_INT(remove(schedule), 0);
    check_refused(ms_arena_printf(cx->arena, "--plan %s", path), plan.schedule_file);
    ASSERT_INT(remove(path), 0);
    ASSERT_TEXT(ms_path_sibling(cx, path, "tests/data/none.csv"), "tests/data/none.csv");
    ASSERT_TEXT(
        ms_path_sibling(cx, MS_SOURCE_DIR "/tests/data/x.json", "schedules/zb_v.csv"),
        ZB_V);
    ASSERT_TEXT(ms_path_sibling(cx, MS_SOURCE_DIR "/tests/data/x.json", ZB_V), ZB_V);
    ASSERT_TEXT(ms_path_sibling(cx, NULL, "zb_v.csv"), "zb_v.csv");
}

static void a_flag_puts_another_schedule_in_the_place_of_a_file(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_ok(cx, USUAL "--global-batch 8 --schedule " ZB_V);
    FILE *file;
    const char *path = open_file(cx, ".json", &file);
    fputs(json_of(cx, &plan), file);
    ASSERT_INT(fclose(file), 0);
    ms_plan same = plan_ok(cx, ms_arena_printf(cx->arena, "--plan %s", path));
    ms_plan other =
        plan_ok(cx, ms_arena_printf(cx->arena,
                                    "--plan %s --schedule 1f1b --virtual-stages 1 "
                                    "--global-batch 24",
                                    path));
    ASSERT_INT(remove(path), 0);
    assert_true(ms_plan_equal(&plan, &same));
    ASSERT_INT(other.schedule, MS_1F1B);
    assert_null(other.schedule_file);
    assert_null(other.schedule_table);
}

static void a_limit_of_memory_is_kept(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan =
        plan_ok(cx, USUAL "--global-batch 8 --schedule zb-auto --memory-limit 1.5");
    ASSERT_NEAR(plan.memory_limit, 1.5, 0);
    ASSERT_NEAR(ms_plan_shape(&plan).memory_limit, 1.5, 0);
    assert_non_null(strstr(ms_plan_text(cx->arena, &plan), "zb-auto limit 1.5"));
    check_read_back(cx, &plan);
    ms_plan usual = plan;
    usual.memory_limit = 0.0;
    assert_false(ms_plan_equal(&plan, &usual));
    check_read_back(cx, &usual);
    ms_plan_set_schedule(&plan, MS_1F1B);
    ASSERT_NEAR(plan.memory_limit, 0.0, 0);
    check_refused(USUAL "--memory-limit 1.5", "only zb-auto takes a memory limit");
    check_refused(USUAL "--schedule zb-auto --memory-limit 0.1",
                  "less than one micro-batch");
}

static void bad_limits_are_errors_at_their_place(void **state)
{
    (void)state;
    static const char *const bad[] = {"-1", "\"2\"", "1e300"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan;
        const char *text = ms_arena_printf(
            cx->arena,
            "{\"model\": \"8b\", \"pipeline\": {\"schedule\": \"zb-auto\", "
            "\"memory_limit\": %s}}",
            bad[i]);
        ASSERT_INT(read_json(cx, text, &plan), MS_EINPUT);
        assert_non_null(strstr(test_messages(cx), "/pipeline/memory_limit"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_a_schedule),
        cmocka_unit_test(a_file_predicts_like_its_schedule),
        cmocka_unit_test(files_that_do_not_match_are_refused),
        cmocka_unit_test(a_path_in_a_plan_is_beside_the_plan),
        cmocka_unit_test(a_flag_puts_another_schedule_in_the_place_of_a_file),
        cmocka_unit_test(a_limit_of_memory_is_kept),
        cmocka_unit_test(bad_limits_are_errors_at_their_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
