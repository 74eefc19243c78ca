/* Tests of the script tests/exec/gpu_report.sh without a GPU: its report where no GPU is
 * found, and where test programs pass, fail or hang. Shell scripts stand in for
 * nvidia-smi, meshsim and the test programs. */
#include "base/clock.h"
#include "base/json.h"
#include "base/rng.h"
#include "tests/support/json_values.h"
#include "tests/test.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
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
    "  kill -KILL $p; exit\n"                                                                \
    "}\n"

/* Script in place of meshsim, with fixed results: a large gradient error with cp method
 * ring, out of memory with --pp 2, a gradient error of null with --ep 2. 3B with long sequences does not
 * fit. $INFO: its JSON description of the GPU; $SLOW: a step of 3B hangs; $CALIBRATES:
 * calibration succeeds. */
static const char meshsim[] = KILL
    "out=; last=; what=$1; fits=true\n"
    "for word in \"$@\"; do [ \"$last\" != -o ] || out=$word; last=$word; done\n"
    "gradient=3e-6; loss=1e-7\n"
    "[ -d \"$MESHSIM_CONFIGS/models\" ] || { echo 'error: no configs' >&2; exit 1; }\n"
    "case \" $* \" in\n"
    "*' --pp 2 '*) echo 'error: out of memory on GPU 0' >&2; exit 1 ;;\n"
    "*' --ep 2 '*) gradient=null ;;\n"
    "*' ring '*) gradient=0.25; code=4 ;;\n"
    "*' --replay '*) kill_at replays ;;\n"
    "*llama-3.2-3b*'--steps'*) kill_at steps; [ -z \"$SLOW\" ] || sleep 100 ;;\n"
    "*llama-3.2-3b*' 32768 '*' none '*) fits=false ;;\n"
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
    "      ]\\n    }\\n  ],\\n  \"device\": {\\n    \"used_bytes\": 2684354560\\n  },\\n"
    "  \"measured\": {\\n    \"step_s\": 0.5,\\n    \"least_step_s\": 0.4,\\n"
    "    \"wall_step_s\": 0.625,\\n"
    "    \"tokens_per_s\": 65536,\\n    \"peak_bytes\": [\\n      1073741824,\\n"
    "      2147483648\\n    ],\\n    \"other\": 1\\n  },\\n  \"predicted\": {\\n"
    "    \"step_s\": 0.4,\\n    \"peak_bytes\": [\\n      2147483648\\n    ]\\n  },\\n"
    "  \"nodes\": [\\n    {\\n      \"kind\": \"head.logits\",\\n      \"measured_s\": 0.25\\n"
    "    }\\n  ],\\n  \"check\": {\\n    \"loss\": {\\n      \"relative\": %s\\n    },\\n"
    "    \"gradients\": {\\n      \"name\": \"w\",\\n      \"relative\": %s\\n    }\\n  }\\n"
    "}\\n' $loss $gradient >\"$out\" ;;\n"
    "predict) printf '{\\n  \"step_s\": 0.25,\\n  \"tokens_per_s\": 131072,\\n"
    "  \"mfu_frac\": 0.5,\\n  \"memory\": {\\n    \"fits\": %s,\\n"
    "    \"capacity_bytes\": 3221225472,\\n    \"device_bytes\": 2415919104\\n  }\\n}\\n' "
    "$fits >\"$out\" ;;\n"
    "calibrate) [ -z \"$CALIBRATES\" ] || { echo '{}' >\"$out\"; exit; }\n"
    "  echo 'error: this GPU \"cannot\" be calibrated' >&2; exit 1 ;;\n"
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
             "cp %s/%s %s/nvidia-smi && env -u OUT -u PYTHON TMPDIR=%s PATH=%s:$PATH "
             "MESHSIM=%s/meshsim TESTS=%s %s/tests/exec/gpu_report.sh --out %s/out %s "
             ">%s/log 2>&1",
             folder, smi, folder, folder, folder, folder, folder, MS_SOURCE_DIR, folder,
             options, folder);
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

/* Reads gpu_report.json of folder `out` in `folder`. */
static result read_result_of(ms_ctx *cx, const char *out_name)
{
    ms_jdoc *doc;
    ms_jval root;
    char path[256];
    snprintf(path, sizeof path, "%s/%s/gpu_report.json", folder, out_name);
    ASSERT_OK(ms_json_load(cx, path, &doc, &root), cx);
    ASSERT_TEXT(test_text(cx, root, "schema"), "meshsim.gpu-report/1");
    result out = {.backend = test_text(cx, root, "backend"),
                  .gpu = test_text(cx, root, "gpu")};
    ASSERT_OK(ms_json_bool(cx, test_member(cx, root, "complete"), &out.complete), cx);
    ms_jval rows = test_member(cx, root, "rows");
    out.num_rows = ms_json_length(rows);
    out.rows = MS_NEW_ARRAY(cx->arena, out.num_rows, row);
    for (int i = 0; i < out.num_rows; i++) {
        ms_jval item = ms_json_element(cx, rows, i),
                value = test_member(cx, item, "value");
        out.rows[i] = (row){test_text(cx, item, "id"), test_text(cx, item, "status"),
                            test_text(cx, item, "detail"), NAN};
        if (!ms_json_is_null(value))
            ASSERT_OK(ms_json_number(cx, value, -INFINITY, INFINITY, &out.rows[i].value),
                      cx);
    }
    ms_json_close(doc);
    return out;
}

static result read_result(ms_ctx *cx)
{
    return read_result_of(cx, "out");
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
    ASSERT_INT(setenv("SLOW", "1", 1), 0);
    ASSERT_INT(report("a-gpu", "--only steps,predictions,calibrate --seconds 8"), 1);
    ASSERT_INT(unsetenv("INFO"), 0);
    ASSERT_INT(unsetenv("SLOW"), 0);
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
    ASSERT_INT(setenv("SLOW", "1", 1), 0);
    ASSERT_INT(report("a-gpu", "--only steps,predictions,models --seconds 8"), 1);
    ASSERT_INT(unsetenv("SLOW"), 0);
    result r = read_result(test_cx());
    assert_row(&r, "steps.1b.seconds", "measured", 500);
    assert_row(&r, "steps.1b.tokens", "measured", 65536);
    assert_row(&r, "steps.1b.mfu", "measured", 0.25);
    assert_row(&r, "steps.1b.memory", "measured", 2.5);
    assert_row(&r, "steps.1b.ledger", "measured", 2);
    assert_row(&r, "steps.1b.wall", "measured", 625);
    assert_row(&r, "steps.3b.seconds", "failed", NAN);
    ASSERT_TEXT(row_of(&r, "steps.3b.seconds")->detail, "ended after its time");
    assert_row(&r, "predictions.1b.step", "measured", 0.5);
    assert_row(&r, "predictions.1b.memory", "measured", 0.9);
    assert_row(&r, "predictions.step.median", "measured", 50);
    assert_row(&r, "predictions.memory.below", "failed", 10);
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
    {"kernels", "kernels"},       {"steps", "steps.3b-32k.seconds"},
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

/* ---- kills at any moment ---- */

/* Starts the three jobs one after the other, in a process group of their own, each with
 * its folder and its log. */
static pid_t start_jobs(void)
{
    char command[1024];
    snprintf(command, sizeof command,
             "cd %s; export TMPDIR=$PWD PATH=$PWD:$PATH MESHSIM=$PWD/meshsim TESTS=$PWD; "
             "export CALIBRATES=1; unset OUT PYTHON; rm -rf job?; cp a-gpu nvidia-smi; "
             "for j in 1 2 3; do mkdir job$j; %s/tests/exec/gpu_report.sh --job $j "
             "--out job$j/out >/dev/null 2>job$j/log; done",
             folder, MS_SOURCE_DIR);
    pid_t jobs = fork();
    assert_true(jobs >= 0);
    if (jobs == 0) {
        (void)setpgid(0, 0);
        execl("/bin/bash", "bash", "-c", command, (char *)NULL);
        _exit(127);
    }
    (void)setpgid(jobs, jobs); /* whichever process comes first */
    return jobs;
}

/* Whether the line of a log is a result's, "12 s left: ID: STATUS ...", cut after ID. */
static bool is_result(char *line, char **id, char **status)
{
    const char *before_id = " s left: ";
    char *at = strstr(line, before_id), *end = NULL;
    if (at != NULL)
        end = strstr(at + strlen(before_id), ": ");
    if (end == NULL)
        return false;
    *end = '\0';
    *id = at + strlen(before_id);
    *status = end + strlen(": ");
    return true;
}

/* Number of the log's results before the part at work, which the last line "part NAME"
 * began. */
static int results_of_ended_parts(FILE *log)
{
    char line[1024], *id, *status;
    int num = 0, ended = 0;
    while (fgets(line, sizeof line, log) != NULL) {
        ended = strncmp(line, "part ", strlen("part ")) == 0 ? num : ended;
        num += is_result(line, &id, &status);
    }
    rewind(log);
    return ended;
}

static void assert_files_are_whole(int job)
{
    char command[512];
    snprintf(command, sizeof command,
             "cd %s/job%d/out && tar tzf gpu_report_runs.tar.gz >/dev/null && tar tzf "
             "gpu_report_logs.tar.gz >/dev/null && grep -q 'one step on one GPU' "
             "gpu_report.txt && test $(find . -type f | wc -l) -le 8",
             folder, job);
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

/* Every result that the job's log has of ended parts is in its JSON, the last one of an
 * id with its status. Returns their number. */
static int assert_job_is_kept(int job)
{
    char path[256], line[1024], *id, *status;
    snprintf(path, sizeof path, "%s/job%d/log", folder, job);
    FILE *log = fopen(path, "r");
    int num = log != NULL ? results_of_ended_parts(log) : 0;
    if (num > 0) {
        snprintf(path, sizeof path, "job%d/out", job);
        result r = read_result_of(test_cx(), path);
        for (int i = 0; i < num && fgets(line, sizeof line, log) != NULL;) {
            if (!is_result(line, &id, &status))
                continue;
            const row *kept = row_of(&r, id);
            if (strncmp(status, kept->status, strlen(kept->status)) != 0)
                fail_msg("%s of job %d is kept as %s, was %s", id, job, kept->status,
                         status);
            i++;
        }
        assert_files_are_whole(job);
    }
    if (log != NULL)
        fclose(log);
    return num;
}

static int assert_jobs_are_kept(void)
{
    int num = 0;
    for (int job = 1; job <= 3; job++)
        num += assert_job_is_kept(job);
    return num;
}

#define NUM_KILLS TEST_CASES(4, 2)

/* Three jobs end to end, killed as a group by a signal that nothing catches, at random
 * moments of their time: results of ended parts are never lost. */
static void random_kills_lose_only_the_part_at_work(void **state)
{
    (void)state;
    int ended;
    double start_s = ms_clock_s();
    pid_t jobs = start_jobs();
    ASSERT_INT(waitpid(jobs, &ended, 0), jobs);
    assert_true(WIFEXITED(ended));
    double all_s = ms_clock_s() - start_s;
    int all = assert_jobs_are_kept(), num_cut = 0;
    assert_true(all > 100);
    result first = read_result_of(test_cx(), "job1/out");
    assert_row(&first, "steps.3b-32k.seconds", "does not fit", NAN);
    ms_rng rng = ms_rng_seed(24);
    for (int kill_number = 0; kill_number < NUM_KILLS; kill_number++) {
        double moment_s = all_s * ms_rng_uniform(&rng);
        jobs = start_jobs();
        nanosleep(&(struct timespec){(time_t)moment_s, (long)(1e9 * fmod(moment_s, 1.0))},
                  NULL);
        ASSERT_INT(kill(-jobs, SIGKILL), 0);
        ASSERT_INT(waitpid(jobs, &ended, 0), jobs);
        bool is_cut = WIFSIGNALED(ended) && assert_jobs_are_kept() < all;
        num_cut += is_cut;
        if (!is_cut)
            all_s = moment_s; /* the machine has become faster */
    }
    if (num_cut < NUM_KILLS / 4)
        fail_msg("%d of %d runs were cut", num_cut, NUM_KILLS);
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
        cmocka_unit_test(random_kills_lose_only_the_part_at_work),
        cmocka_unit_test(jobs_are_all_parts),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_programs, remove_programs);
}
