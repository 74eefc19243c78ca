/* Commands as main() runs them: their output has no control characters that steer a
 * terminal, whatever the names in their files contain, and a result that cannot be
 * written is a failure. */
#include "base/utf8.h"
#include "cli/options/commands.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORDS 40
/* STRANGE_NAME is a name as JSON files hold it, STRANGE_SHOWN the same name as commands
 * must print it. It holds "<|", which may look like a separator of table cells, an escape
 * sequence, a newline and a C1 control character. */
#define STRANGE_NAME  "<|we\\u001b[31m\\n\\u009b"
#define STRANGE_SHOWN "<|we\\x1B[31m\\x0A\\xC2\\x9B"

static char folder[] = "/tmp/meshsim-test-commands-XXXXXX";

static const char *path_of(ms_ctx *cx, const char *name)
{
    return ms_arena_printf(cx->arena, "%s/%s", folder, name);
}

static const char *content(ms_ctx *cx, const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    ASSERT_INT(fseek(file, 0, SEEK_END), 0);
    return test_read_back(cx->arena, file);
}

/* Writes a copy of the file `from` in which every text after `key` begins with `name`. */
static void copy_with_strange_names(ms_ctx *cx, const char *from, const char *key,
                                    const char *to, const char *name)
{
    const char *text = content(cx, from);
    FILE *file = fopen(path_of(cx, to), "w");
    assert_non_null(file);
    for (const char *at; (at = strstr(text, key)) != NULL; text = at + strlen(key))
        fprintf(file, "%.*s%s%s", (int)(at - text), text, key, name);
    fputs(text, file);
    ASSERT_INT(fclose(file), 0);
}

static int make_files(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    ms_ctx *cx = test_cx();
    copy_with_strange_names(cx, "configs/clusters/hgx-h100.json", "\"name\": \"",
                            "cluster.json", STRANGE_NAME);
    copy_with_strange_names(cx, "tests/data/runs_sample.csv", ",torchtitan", "runs.csv",
                            "\x1B[31m\xC2\x9B");
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    (void)remove(path_of(cx, "cluster.json"));
    (void)remove(path_of(cx, "runs.csv"));
    (void)remove(path_of(cx, "out"));
    return rmdir(folder);
}

/* Runs a command line; words that are names of test files are replaced by their paths. */
static ms_status run_command(ms_ctx *cx, const char *line)
{
    char *argv[MAX_WORDS] = {NULL};
    int argc = 0;
    for (char *word = strtok(ms_arena_strdup(cx->arena, line), " "); word != NULL;
         word = strtok(NULL, " ")) {
        bool is_file = strchr(word, '/') == NULL && access(path_of(cx, word), F_OK) == 0;
        argv[argc++] = is_file ? ms_arena_strdup(cx->arena, path_of(cx, word)) : word;
    }
    ms_args args = {
        .command = ms_command_find(cx, argv[0]), .argc = argc - 1, .argv = argv + 1};
    return args.command->run(cx, &args);
}

/* ---- names ---- */

static void assert_printable(const char *line, const char *text)
{
    size_t length = strlen(text);
    for (size_t at = 0, step; at < length; at += step) {
        step = ms_utf8_step(text + at, length - at);
        if (step == 0 || (text[at] != '\n' && ms_utf8_is_control(text + at, step)))
            fail_msg("%s: byte 0x%02X at %zu, after \"%.*s\"", line,
                     (unsigned)(unsigned char)text[at], at, at < 40 ? (int)at : 40,
                     text + at - (at < 40 ? at : 40));
    }
}

#define STRANGE_PLAN                                                                     \
    " --quiet --cluster cluster.json --model llama-15m --gpus 16 --tp 2 --dp-shard 8 "   \
    "--seq 128 --global-batch 16"

static void names_cannot_steer_a_terminal(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool shows_name;
    } rows[] = {
        {"cluster cluster.json", true},
        {"cluster cluster.json --json", false},
        {"explain" STRANGE_PLAN, true},
        {"explain" STRANGE_PLAN " --part layer", true},
        {"explain --quiet --einsum bsh,hf->bsf --mesh dp=2,tp=8 --cluster cluster.json",
         true},
        {"predict" STRANGE_PLAN, true},
        {"mesh --quiet --mesh dp=2,tp=8 --cluster cluster.json", true},
        {"mesh" STRANGE_PLAN " --orders", true},
        {"simulate" STRANGE_PLAN " --gantt compute", true},
        {"simulate" STRANGE_PLAN " --gantt streams --engine event", true},
        {"search --quiet --cluster cluster.json --model llama-15m --gpus 2 --seq 128 "
         "--global-batch 2 --fix schedule=1f1b,recompute=none --why tp=2",
         false},
        {"run" STRANGE_PLAN " --backend null --steps 1", false},
        {"validate --quiet runs.csv --by framework,source", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ms_ctx *cx = test_cx();
        const char *out = path_of(cx, "out");
        ASSERT_OK(
            run_command(cx, ms_arena_printf(cx->arena, "%s -o %s", rows[i].line, out)),
            cx);
        const char *text = content(cx, out);
        assert_printable(rows[i].line, text);
        if (rows[i].shows_name && strstr(text, STRANGE_SHOWN) == NULL)
            fail_msg("%s: the name is not shown", rows[i].line);
    }
}

/* ---- lost results ---- */

/* Exit status of the command in a child process whose standard output is `path`,
 * opened with `flags`. */
static int status_with_output(const char *line, const char *path, int flags)
{
    (void)fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        ms_ctx *cx = test_cx();
        int out = open(path, flags), err = open("/dev/null", O_WRONLY);
        if (dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
            _exit(98);
        ms_status status = run_command(cx, line);
        _exit(strstr(test_messages(cx), "cannot write ") == NULL ? 99 : (int)status);
    }
    int state = 0;
    ASSERT_INT(waitpid(child, &state, 0), child);
    return WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
}

#define PLAN " --model llama-15m --gpus 2 --dp-shard 2 --seq 128 --global-batch 2"

static const char *const results[] = {
    "version",
    "help",
    "help predict --json",
    "predict --help",
    "info",
    "model",
    "model 8b",
    "cluster --json",
    "cluster hgx-h100",
    "schedule",
    "schedule 1f1b --pp 16 --microbatches 512 --json",
    "schedule 1f1b --pp 2 --microbatches 4 --format torch-csv",
    "mesh",
    "mesh --mesh dp=2,tp=4 --draw",
    "predict" PLAN,
    "predict --json" PLAN,
    "predict --model 70b --gpus 1",
    "search --model llama-15m --gpus 1 --seq 128 --global-batch 1 --fix "
    "schedule=1f1b,microbatch=1,recompute=none",
    "simulate" PLAN,
    "simulate --json" PLAN,
    "explain" PLAN,
    "explain --einsum bsh,hf->bsf --mesh dp=2,tp=4",
    "validate tests/data/runs_sample.csv",
    "validate tests/data/collectives_sample.csv --json",
    "compare tests/data/compare/predicted.json tests/data/compare/measured.json",
    "run --backend loop --steps 1" PLAN,
    "run --backend null --steps 1 --json" PLAN,
    "calibrate --from tests/data/collectives_sample.csv",
    "calibrate --from tests/data/runs_fit.csv --json",
};

static void assert_lost(const char *line, const char *path, int flags)
{
    int status = status_with_output(line, path, flags);
    if (status != MS_EIO)
        fail_msg("%s, standard output %s: status %d, want %d", line, path, status,
                 MS_EIO);
}

static void a_lost_result_is_a_failure(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        ms_arena *arena = test_cx()->arena;
        assert_lost(results[i], "/dev/full", O_WRONLY);
        assert_lost(ms_arena_printf(arena, "%s -o -", results[i]), "/dev/null", O_RDONLY);
        assert_lost(ms_arena_printf(arena, "%s -o /dev/full", results[i]), "/dev/null",
                    O_WRONLY);
    }
}

/* A command fails if a file beside its main result cannot be written, or the summary
 * of a plot. */
static void a_lost_side_result_is_a_failure(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "simulate --trace /dev/full" PLAN,
        "run --backend loop --steps 1 --trace /dev/full" PLAN,
        "run --backend loop --steps 1 --save-weights /dev/full" PLAN,
        "run --backend loop --steps 1 --save-final-weights /dev/full" PLAN,
        "search --model llama-15m --gpus 1 --seq 128 --global-batch 1 --fix "
        "schedule=1f1b,microbatch=1,recompute=none --save-plan /dev/full",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_lost(lines[i], "/dev/null", O_WRONLY);
    assert_lost("plot scaling --model 405b --gpus 1..2", "/dev/full", O_WRONLY);
    assert_lost("plot scaling --model 405b --gpus 1..2 --json", "/dev/full", O_WRONLY);
    assert_lost("plot memory --json" PLAN, "/dev/full", O_WRONLY);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_cannot_steer_a_terminal),
        cmocka_unit_test(a_lost_result_is_a_failure),
        cmocka_unit_test(a_lost_side_result_is_a_failure),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
