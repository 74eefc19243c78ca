/* Tests of the script tests/exec/gpu_report.sh without a GPU: its report where no GPU is
 * found, and where test programs pass, fail or hang. Shell scripts stand in for
 * nvidia-smi, meshsim and the test programs. */
#include "base/json.h"
#include "tests/test.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/meshsim-report-XXXXXX";

static void write_script(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("#!/bin/bash\n", file);
    fputs(text, file);
    fclose(file);
    ASSERT_INT(chmod(path, 0700), 0);
}

/* Kills the report script, an ancestor, by SIGKILL where a stand-in runs in the part
 * $KILL_AT; stand-ins begin with it and call it with the name of their part. */
#define KILL                                                                                 \
    "kill_at() {\n"                                                                          \
    "  [ \"$1\" = \"$KILL_AT\" ] || return\n"                                                \
    "  p=$PPID\n"                                                                            \
    "  until tr '\\0' ' ' </proc/$p/cmdline | grep -q '^[^ ]*bash [^ ]*gpu_report.sh'; do\n" \
    "    p=$(awk '/^PPid/ { print $2 }' /proc/$p/status)\n"                                  \
    "  done\n"                                                                               \
    "  kill -KILL $p; sleep 1\n"                                                             \
    "}\n"

/* Script in place of meshsim, with fixed results: a large gradient error with cp method
 * ring, out of memory with --pp 2, a gradient error of null with --ep 2. $INFO: its JSON
 * description of the GPU. */
static const char meshsim[] = KILL
    "out=; last=; what=$1\n"
    "for word in \"$@\"; do [ \"$last\" != -o ] || out=$word; last=$word; done\n"
    "gradient=3e-6; loss=1e-7\n"
    "[ -d \"$MESHSIM_CONFIGS/models\" ] || { echo 'error: no configs' >&2; exit 1; }\n"
    "case \" $* \" in\n"
    "*' --pp 2 '*) echo 'error: out of memory on GPU 0' >&2; exit 1 ;;\n"
    "*' --ep 2 '*) gradient=null ;;\n"
    "*' ring '*) gradient=0.25; code=4 ;;\n"
    "*' --replay '*) kill_at replays ;;\n"
    "*llama-3.2-3b*'--steps'*) kill_at steps; [ -n \"$KILL_AT\" ] || sleep 100 ;;\n"
    "*gpu/moe.json*'--dp-shard'*) kill_at meshes ;;\n"
    "*gpu/moe.json*) kill_at models ;;\n"
    "*calibrate*) kill_at calibrate ;;\n"
    "esac\n"
    "case $what in\n"
    "info) [ -z \"$out\" ] || printf '    \"cluster\": %s\\n' \"${INFO:-\\\"hgx-h200\\\"}\" >\"$out\" ;;\n"
    "run) printf '{\\n  \"step_s\": 0.75,\\n  \"predicted_step_s\": 0.5,\\n  \"ranks\": [\\n"
    "    {\\n      \"peak_bytes\": 300,\\n      \"predicted_peak_bytes\": 200,\\n"
    "      \"actions\": [\\n        {\\n          \"action\": \"forward\",\\n"
    "          \"measured_s\": 0.5,\\n          \"predicted_s\": 0.25\\n        }\\n"
    "      ]\\n    }\\n  ],\\n  \"measured\": {\\n    \"step_s\": 0.5,\\n    \"least_step_s\": 0.4,\\n"
    "    \"tokens_per_s\": 65536,\\n    \"peak_bytes\": [\\n      1073741824,\\n"
    "      2147483648\\n    ],\\n    \"other\": 1\\n  },\\n  \"predicted\": {\\n"
    "    \"step_s\": 0.4,\\n    \"peak_bytes\": [\\n      2147483648\\n    ]\\n  },\\n"
    "  \"nodes\": [\\n    {\\n      \"kind\": \"head.logits\",\\n      \"measured_s\": 0.25\\n"
    "    }\\n  ],\\n  \"check\": {\\n    \"loss\": {\\n      \"relative\": %s\\n    },\\n"
    "    \"gradients\": {\\n      \"name\": \"w\",\\n      \"relative\": %s\\n    }\\n  }\\n"
    "}\\n' $loss $gradient >\"$out\" ;;\n"
    "predict) printf '{\\n  \"step_s\": 0.25,\\n  \"tokens_per_s\": 131072,\\n"
    "  \"mfu_frac\": 0.5\\n}\\n' >\"$out\" ;;\n"
    "calibrate) echo 'error: this GPU \"cannot\" be calibrated' >&2; exit 1 ;;\n"
    "esac\n"
    "exit ${code:-0}\n";

static int make_programs(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return 1;
    write_script("meshsim", meshsim);
    write_script("no-gpu", "exit 9\n");
    write_script("a-gpu", "echo 'Some GPU, 1.2'\n");
    write_script("python3",
                 KILL "case \"$*\" in *gpu_report_torch*) kill_at torch ;; esac\n");
    write_script("compute-sanitizer", KILL "kill_at sanitizer\nexit 1\n");
    write_script("test_cuda_good",
                 KILL "kill_at kernels; echo '[ RUN      ] a'; echo '[       OK ] a'\n"
                      "echo '[ RUN      ] b'; echo '[  SKIPPED ] b'\n");
    return 0;
}

static int remove_programs(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

/* Runs the report script with `smi` in place of nvidia-smi; returns its exit status. */
static int report(const char *smi, const char *options)
{
    char command[1024];
    snprintf(command, sizeof command,
             "cp %s/%s %s/nvidia-smi && env -u OUT -u PYTHON PATH=%s:$PATH "
             "MESHSIM=%s/meshsim TESTS=%s %s/tests/exec/gpu_report.sh --out %s/out %s "
             ">%s/log 2>&1",
             folder, smi, folder, folder, folder, folder, MS_SOURCE_DIR, folder, options,
             folder);
    int status = system(command);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* ---- the written report ---- */

typedef struct row {
    const char *id, *status, *detail;
    double value; /* NaN: the row has no value */
} row;

typedef struct result {
    int num_rows;
    row *rows;
    const char *backend, *gpu;
    bool complete;
} result;

static ms_jval member(ms_ctx *cx, ms_jval object, const char *name)
{
    ms_jval value;
    if (!ms_json_member(cx, object, name, &value))
        fail_msg("no member \"%s\"", name);
    return value;
}

static const char *text_of(ms_ctx *cx, ms_jval object, const char *name)
{
    const char *text;
    ASSERT_OK(ms_json_text(cx, member(cx, object, name), &text), cx);
    return text;
}

static result read_result(ms_ctx *cx)
{
    ms_jdoc *doc;
    ms_jval root;
    char path[256];
    snprintf(path, sizeof path, "%s/out/gpu_report.json", folder);
    ASSERT_OK(ms_json_load(cx, path, &doc, &root), cx);
    ASSERT_TEXT(text_of(cx, root, "schema"), "meshsim.gpu-report/1");
    result out = {.backend = text_of(cx, root, "backend"),
                  .gpu = text_of(cx, root, "gpu")};
    ASSERT_OK(ms_json_bool(cx, member(cx, root, "complete"), &out.complete), cx);
    ms_jval rows = member(cx, root, "rows");
    out.num_rows = ms_json_length(rows);
    out.rows = MS_NEW_ARRAY(cx->arena, out.num_rows, row);
    for (int i = 0; i < out.num_rows; i++) {
        ms_jval item = ms_json_element(cx, rows, i), value = member(cx, item, "value");
        out.rows[i] = (row){text_of(cx, item, "id"), text_of(cx, item, "status"),
                            text_of(cx, item, "detail"), NAN};
        if (!ms_json_is_null(value))
            ASSERT_OK(ms_json_number(cx, value, -INFINITY, INFINITY, &out.rows[i].value),
                      cx);
    }
    ms_json_close(doc);
    return out;
}

static const row *row_of(const result *r, const char *id)
{
    for (int i = 0; i < r->num_rows; i++)
        if (strcmp(r->rows[i].id, id) == 0)
            return &r->rows[i];
    fail_msg("no row \"%s\"", id);
    return NULL;
}

static void assert_row(const result *r, const char *id, const char *status, double value)
{
    const row *found = row_of(r, id);
    if (strcmp(found->status, status) != 0)
        fail_msg("%s: %s (%s), want %s", id, found->status, found->detail, status);
    if (isnan(value))
        assert_true(isnan(found->value));
    else
        ASSERT_NEAR(found->value, value, 1e-5);
}

static void assert_nothing_is_measured(const result *r)
{
    assert_true(r->num_rows > 40);
    for (int i = 0; i < r->num_rows; i++)
        assert_row(r, r->rows[i].id, "not measured", NAN);
}

/* ---- tests ---- */

static void a_dry_report_measures_nothing(void **state)
{
    (void)state;
    ASSERT_INT(report("a-gpu", "--dry"), 0);
    result r = read_result(test_cx());
    assert_nothing_is_measured(&r);
}

static void without_a_gpu_nothing_is_measured(void **state)
{
    (void)state;
    ASSERT_INT(report("no-gpu", ""), 1);
    result r = read_result(test_cx());
    ASSERT_TEXT(r.gpu, "");
    assert_nothing_is_measured(&r);
}

static void unknown_words_are_refused(void **state)
{
    (void)state;
    ASSERT_INT(report("a-gpu", "--quick"), 2);
    ASSERT_INT(report("a-gpu", "--only kernels,colours"), 2);
    ASSERT_INT(report("a-gpu", "--only"), 2);
    ASSERT_INT(report("a-gpu", "--seconds many"), 2);
}

/* A report folder that cannot be made is refused: nothing is measured or written
 * elsewhere. */
static void a_folder_that_cannot_be_is_refused(void **state)
{
    (void)state;
    ASSERT_INT(report("a-gpu", "--out /proc/no-folder"), 1);
    char line[256] = "";
    snprintf(line, sizeof line, "%s/log", folder);
    FILE *log = fopen(line, "r");
    assert_non_null(log);
    while (fgets(line, sizeof line, log) != NULL)
        ;
    fclose(log);
    ASSERT_TEXT(line, "no results can be written to /proc/no-folder\n");
}

/* A GPU without a known peak FLOP rate gets no MFU and no prediction, rather than another
 * GPU's. */
static void an_unknown_gpu_has_no_predictions(void **state)
{
    (void)state;
    ASSERT_INT(setenv("INFO", "null", 1), 0);
    ASSERT_INT(report("a-gpu", "--only steps,predictions,calibrate --seconds 12"), 1);
    ASSERT_INT(unsetenv("INFO"), 0);
    result r = read_result(test_cx());
    assert_row(&r, "steps.1b.tokens", "measured", 65536);
    assert_row(&r, "steps.1b.mfu", "not measured", NAN);
    assert_row(&r, "predictions.1b.step", "not measured", NAN);
    assert_row(&r, "calibrate", "not measured", NAN);
}

static void parts_fail_alone(void **state)
{
    (void)state;
    ASSERT_INT(report("a-gpu", "--only kernels,models,meshes,calibrate"), 1);
    result r = read_result(test_cx());
    ASSERT_TEXT(r.gpu, "Some GPU, 1.2");
    assert_true(r.complete);
    assert_row(&r, "kernels", "passed", 1);
    assert_row(&r, "models.llama.fp32", "passed", 3e-6);
    assert_row(&r, "models.gpt.bf16", "passed", 3e-6);
    assert_row(&r, "meshes.tp2", "passed", 3e-6);
    assert_row(&r, "meshes.cp2-ring", "failed", 0.25);
    assert_row(&r, "meshes.pp2", "failed", NAN);
    assert_non_null(strstr(row_of(&r, "meshes.pp2")->detail, "out of memory on GPU 0"));
    assert_row(&r, "meshes.ep2", "failed", NAN);
    assert_row(&r, "meshes.cp2dp2", "passed", 3e-6);
    assert_row(&r, "calibrate", "failed", NAN);
    assert_non_null(strstr(row_of(&r, "calibrate")->detail, "\"cannot\" be"));
    assert_row(&r, "calibrate.1b.step", "not measured", NAN);
    assert_row(&r, "steps.1b.tokens", "not measured", NAN);
}

static void a_failing_test_program_is_named(void **state)
{
    (void)state;
    write_script("test_cuda_bad", "echo '[ RUN      ] c'; kill -SEGV $$\n");
    int status = report("a-gpu", "--only kernels");
    char path[256];
    snprintf(path, sizeof path, "%s/test_cuda_bad", folder);
    ASSERT_INT(remove(path), 0);
    ASSERT_INT(status, 1);
    result r = read_result(test_cx());
    assert_row(&r, "kernels", "failed", 1);
    assert_non_null(strstr(row_of(&r, "kernels")->detail, "1 failed in test_cuda_bad"));
}

static void steps_are_measured_until_no_time_is_left(void **state)
{
    (void)state;
    ASSERT_INT(report("a-gpu", "--only steps,predictions,models --seconds 12"), 1);
    result r = read_result(test_cx());
    assert_row(&r, "steps.1b.seconds", "measured", 500);
    assert_row(&r, "steps.1b.tokens", "measured", 65536);
    assert_row(&r, "steps.1b.mfu", "measured", 0.25);
    assert_row(&r, "steps.1b.memory", "measured", 2);
    assert_row(&r, "steps.3b.seconds", "failed", NAN);
    ASSERT_TEXT(row_of(&r, "steps.3b.seconds")->detail, "ended after its time ");
    assert_row(&r, "predictions.1b.step", "measured", 0.8);
    assert_row(&r, "predictions.1b.memory", "measured", 1);
    assert_row(&r, "predictions.3b.step", "not measured", NAN);
    assert_row(&r, "models.llama.fp32", "failed", NAN);
}

static void a_rank_stands_in_for_a_job(void **state)
{
    (void)state;
    ASSERT_INT(report("a-gpu", "--only replays"), 1);
    result r = read_result(test_cx());
    assert_row(&r, "replays.70b.step", "measured", 750);
    assert_row(&r, "replays.70b.actions", "measured", 0.5);
    assert_row(&r, "replays.405b.memory", "measured", 1.5);
}

/* The parts in their order, each with a row that it leaves. */
static const struct {
    const char *part, *row;
} parts[] = {
    {"kernels", "kernels"},       {"steps", "steps.1b.tokens"},
    {"predictions", NULL}, /* takes no time of its own */
    {"calibrate", "calibrate"},   {"models", "models.gpt.fp8"},
    {"meshes", "meshes.cp2dp2"},  {"replays", "replays.70b.step"},
    {"torch", "torch.1b.tokens"}, {"sanitizer", "sanitizer.racecheck.moe"},
};
#define NUM_PARTS ((int)(sizeof parts / sizeof *parts))

static bool is_there(const result *r, const char *id)
{
    return id != NULL && strcmp(row_of(r, id)->status, "not measured") != 0;
}

/* A kill that nothing can catch, in each part: what parts before it found is there. */
static void a_kill_loses_only_the_part_at_work(void **state)
{
    (void)state;
    for (int killed = 1; killed < NUM_PARTS; killed++) {
        if (parts[killed].row == NULL)
            continue;
        ASSERT_INT(setenv("KILL_AT", parts[killed].part, 1), 0);
        ASSERT_INT(report("a-gpu", ""), 128 + SIGKILL);
        result r = read_result(test_cx());
        assert_false(r.complete);
        for (int i = 0; i < NUM_PARTS; i++)
            if (parts[i].row != NULL && is_there(&r, parts[i].row) != (i < killed))
                fail_msg("killed in %s: %s is %s", parts[killed].part, parts[i].row,
                         row_of(&r, parts[i].row)->status);
    }
    ASSERT_INT(unsetenv("KILL_AT"), 0);
}

/* Three jobs have each part once. */
static void jobs_are_all_parts(void **state)
{
    (void)state;
    ASSERT_INT(report("a-gpu", "--job 4"), 2);
    ASSERT_INT(report("a-gpu", "--job 3"), 1);
    result r = read_result(test_cx());
    for (int i = 0; i < NUM_PARTS; i++)
        if (parts[i].row != NULL)
            assert_int_equal(is_there(&r, parts[i].row), i >= NUM_PARTS - 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dry_report_measures_nothing),
        cmocka_unit_test(without_a_gpu_nothing_is_measured),
        cmocka_unit_test(unknown_words_are_refused),
        cmocka_unit_test(a_folder_that_cannot_be_is_refused),
        cmocka_unit_test(an_unknown_gpu_has_no_predictions),
        cmocka_unit_test(parts_fail_alone),
        cmocka_unit_test(a_failing_test_program_is_named),
        cmocka_unit_test(steps_are_measured_until_no_time_is_left),
        cmocka_unit_test(a_rank_stands_in_for_a_job),
        cmocka_unit_test(a_kill_loses_only_the_part_at_work),
        cmocka_unit_test(jobs_are_all_parts),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_programs, remove_programs);
}
