/* Every command that reads a file, given every kind of bad file: the documented exit
 * code, a message that names the file, nothing on standard output, no crash. Runs the
 * built program, so the sanitizer builds check it too. */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEEP 100000

static char folder[] = "/tmp/meshsim-bad-XXXXXX";

/* ---- commands: %s is the file ---- */

static const char *const json_commands[] = {
    "model %s",
    "cluster %s",
    "predict %s",
    "predict --gpus 8 --model %s",
    "predict --gpus 8 --model 8b --cluster %s",
    "search --gpus 8 --model %s",
    "search --gpus 8 --model 8b --cluster %s",
    "explain %s",
    "explain --einsum \"ij,jk->ik\" --mesh tp=4 --cluster %s",
    "mesh %s",
    "mesh --mesh tp=4 --cluster %s",
};
#define NUM_JSON_COMMANDS ((int)(sizeof json_commands / sizeof *json_commands))

/* ---- bad files ---- */

typedef struct bad_file {
    const char *name;
    const char *text;
    int exit_code;
} bad_file;

static const bad_file bad_files[] = {
    {"empty.json", "", 2},
    {"truncated.json", "{\"schema\": \"meshsim.plan/1\", \"mesh\": [", 2},
    {"array.json", "[1, 2, 3]", 2},
    {"number.json", "7", 2},
    {"wrong_type.json",
     "{\"schema\": 7, \"name\": [], \"model\": {}, \"gpus\": \"many\"}", 2},
    {"unknown_key.json", "{\"schema\": \"meshsim.plan/1\", \"gpuz\": 8}", 2},
    {"unknown_schema.json", "{\"schema\": \"somebody.else/9\"}", 2},
    {"unknown_type.json", "{\"model_type\": \"quantum\", \"layers\": 3}", 2},
    {"not_utf8.json", "{\"name\": \"\xff\xfe\"}", 2},
    {"negative.json",
     "{\"model_type\": \"llama\", \"vocab_size\": 100, \"hidden_size\": -64, \"intermediate_size\": 128,"
     " \"num_hidden_layers\": 2, \"num_attention_heads\": 4}",
     2},
    {"huge.json",
     "{\"model_type\": \"llama\", \"vocab_size\": 1e300, \"hidden_size\": 1e18, \"intermediate_size\": 128,"
     " \"num_hidden_layers\": 99999999999999999999, \"num_attention_heads\": 4}",
     2},
    {"zero_heads.json",
     "{\"model_type\": \"llama\", \"vocab_size\": 100, \"hidden_size\": 64, \"intermediate_size\": 128,"
     " \"num_hidden_layers\": 2, \"num_attention_heads\": 0}",
     2},
    {"zero_gpus.json",
     "{\"schema\": \"meshsim.plan/1\", \"model\": \"8b\", \"gpus\": 0, \"mesh\": []}", 2},
    {"negative_gpus.json",
     "{\"schema\": \"meshsim.plan/1\", \"model\": \"8b\", \"gpus\": -8, \"mesh\": []}",
     2},
    {"bare_number.json",
     "{\"schema\": \"meshsim.cluster-config/1\", \"device\": {\"memory\": 80}}", 2},
};
#define NUM_BAD_FILES ((int)(sizeof bad_files / sizeof *bad_files))

static char *path_of(ms_ctx *cx, const char *name)
{
    return ms_arena_printf(cx->arena, "%s/%s", folder, name);
}

static void write_file(ms_ctx *cx, const char *name, const char *text)
{
    FILE *file = fopen(path_of(cx, name), "w");
    assert_non_null(file);
    fputs(text, file);
    ASSERT_INT(fclose(file), 0);
}

/* ---- running ---- */

typedef struct outcome {
    int exit_code; /* exit status of the command; -1: a signal ended it */
    char out[4096], err[65536];
} outcome;

static void read_back(ms_ctx *cx, const char *name, char *buf, size_t size)
{
    FILE *file = fopen(path_of(cx, name), "r");
    assert_non_null(file);
    buf[fread(buf, 1, size - 1, file)] = '\0';
    fclose(file);
}

static outcome *run(ms_ctx *cx, const char *arguments)
{
    const char *build = getenv("B");
    outcome *o = MS_NEW(cx->arena, outcome);
    const char *line =
        ms_arena_printf(cx->arena, "%s/meshsim %s > %s/out 2> %s/err < /dev/null",
                        build != NULL ? build : "build/opt", arguments, folder, folder);
    int status = system(line);
    o->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    read_back(cx, "out", o->out, sizeof o->out);
    read_back(cx, "err", o->err, sizeof o->err);
    return o;
}

static void expect_failure(ms_ctx *cx, const char *arguments, int exit_code,
                           const char *mention)
{
    const outcome *o = run(cx, arguments);
    if (o->exit_code != exit_code)
        fail_msg("meshsim %s: exit code %d, want %d: %s", arguments, o->exit_code,
                 exit_code, o->err);
    if (strstr(o->err, "error: ") == NULL || strstr(o->err, mention) == NULL)
        fail_msg("meshsim %s: no error that mentions %s: %s", arguments, mention, o->err);
    if (o->out[0] != '\0')
        fail_msg("meshsim %s: something on standard output: %s", arguments, o->out);
    if (strstr(o->err, "Sanitizer") != NULL || strstr(o->err, "runtime error") != NULL)
        fail_msg("meshsim %s: %s", arguments, o->err);
}

static void expect_json_failures(ms_ctx *cx, const char *name, int exit_code)
{
    for (int i = 0; i < NUM_JSON_COMMANDS; i++) {
        char arguments[512];
        const char *path = path_of(cx, name), *hole = strstr(json_commands[i], "%s");
        snprintf(arguments, sizeof arguments, "%.*s%s", (int)(hole - json_commands[i]),
                 json_commands[i], path);
        expect_failure(cx, arguments, exit_code, name);
    }
}

/* ---- tests ---- */

static void bad_json_is_bad_input_for_every_command(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    for (int i = 0; i < NUM_BAD_FILES; i++) {
        write_file(cx, bad_files[i].name, bad_files[i].text);
        expect_json_failures(cx, bad_files[i].name, bad_files[i].exit_code);
    }
}

static void deep_nesting_is_bad_input_for_every_command(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    char *text = MS_NEW_ARRAY(cx->arena, DEEP + 1, char);
    memset(text, '[', DEEP);
    write_file(cx, "deep.json", text);
    expect_json_failures(cx, "deep.json", 2);
}

static void files_that_cannot_be_read_are_failures(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    mkdir(path_of(cx, "folder.json"), 0700);
    expect_json_failures(cx, "folder.json", 1);
    expect_json_failures(cx, "absent.json", 1);
    expect_failure(cx,
                   ms_arena_printf(cx->arena, "validate %s", path_of(cx, "absent.csv")),
                   1, "absent.csv");
    expect_failure(cx, ms_arena_printf(cx->arena, "validate %s", folder), 1, folder);
}

static void tables_that_are_none_are_bad_input(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    static const char *const texts[] = {"",     "id\n",        "a,b,c\n1,2,3\n",
                                        "\"id", "{\"id\": 1}", "\xff\xfe\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file(cx, "table.csv", texts[i]);
        expect_failure(
            cx, ms_arena_printf(cx->arena, "validate %s", path_of(cx, "table.csv")), 2,
            "table.csv");
        expect_failure(
            cx, ms_arena_printf(cx->arena, "schedule %s", path_of(cx, "table.csv")), 2,
            "table.csv");
    }
}

/* Schedule sizes that no machine has, and words where numbers belong. */
static void silly_schedules_are_bad_input(void **state)
{
    (void)state;
    static const char *const commands[][2] = {
        {"schedule gpipe --pp 0 --microbatches 4", "--pp"},
        {"schedule gpipe --pp 4 --microbatches -1", "--microbatches"},
        {"schedule gpipe --pp four --microbatches 8", "--pp"},
        {"schedule gpipe --pp 16383 --microbatches 4194304", "at most"},
        {"schedule interleaved --pp 16383 --microbatches 4194304 --virtual-stages 16383",
         "at most"},
        {"schedule interleaved --pp 4 --microbatches 8 --group 9", "larger than"},
        {"schedule interleaved --pp 1 --microbatches 8", "at least 2 pipeline ranks"},
        {"schedule combined --pp 4 --microbatches 8 --virtual-stages 1", "at least"},
        {"schedule zb-v --pp 4 --microbatches 8 --virtual-stages 3", "2 virtual stages"},
        {"schedule dualpipe --pp 3 --microbatches 8", "dualpipe: "},
        {"schedule dualpipe --pp 4 --microbatches 7", "dualpipe: "},
        {"schedule 1f1b --pp 4 --microbatches 8 --forward -1", "--forward"},
        {"schedule 1f1b --pp 4 --microbatches 8 --p2p 1e300", "--p2p"},
        {"schedule zb-auto --pp 4 --microbatches 8 --memory-limit 1e99",
         "--memory-limit"},
        {"schedule zb-auto --pp 4 --microbatches 8 --memory-limit 0", "must be above 0"},
        {"predict --model 1b --pp 2 --schedule zb-auto --memory-limit 0",
         "must be above 0"},
        {"schedule 1f1b --pp 4 --microbatches 8 --format svg", "--format"},
        {"schedule 1f1b gpipe --pp 4 --microbatches 8", "gpipe"},
        {"schedule absent.csv", "absent.csv"},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        int exit_code = strstr(commands[i][0], "absent") != NULL ? 1 : 2;
        expect_failure(cx, commands[i][0], exit_code, commands[i][1]);
    }
}

static void files_that_cannot_be_written_are_failures(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    static const char *const commands[] = {
        "model 8b",
        "cluster h100",
        "search --gpus 8 --model 8b",
        "predict --gpus 8 --model 8b --zero 3 --recompute full",
        "explain --gpus 8 --model 8b",
        "explain --einsum \"ij,jk->ik\" --mesh tp=4",
        "mesh --mesh dp=2,tp=4",
        "info",
        "version",
        "help"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        expect_failure(cx,
                       ms_arena_printf(cx->arena, "%s -o %s/none/x", commands[i], folder),
                       1, "none/x");
}

static void numbers_of_gpus_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    static const char *const numbers[] = {
        "0", "-8", "1.5", "1e308", "99999999999999999999", "eight", "\"\""};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        expect_failure(
            cx, ms_arena_printf(cx->arena, "search --model 8b --gpus %s", numbers[i]), 2,
            "--gpus");
        expect_failure(
            cx, ms_arena_printf(cx->arena, "predict --model 8b --gpus %s", numbers[i]), 2,
            "--gpus");
    }
}

static void nearest_names_are_suggested(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    expect_failure(cx, "search --gpus 8 --model lama-3.1-8b", 2, "llama-3.1-8b");
    expect_failure(cx, "predict --gpus 8 --model 8b --cluster hgx-h10", 2, "hgx-h100");
    expect_failure(cx, "predict --gpus 8 --model 8b --stack megatrn", 2, "megatron");
    expect_failure(cx, "model qwen3-8c", 2, "qwen3-8b");
    expect_failure(cx, "serch --gpus 8", 2, "search");
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    return system(ms_arena_printf(cx->arena, "rm -rf %s", folder));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_json_is_bad_input_for_every_command),
        cmocka_unit_test(deep_nesting_is_bad_input_for_every_command),
        cmocka_unit_test(files_that_cannot_be_read_are_failures),
        cmocka_unit_test(tables_that_are_none_are_bad_input),
        cmocka_unit_test(silly_schedules_are_bad_input),
        cmocka_unit_test(files_that_cannot_be_written_are_failures),
        cmocka_unit_test(numbers_of_gpus_that_make_no_sense_are_refused),
        cmocka_unit_test(nearest_names_are_suggested),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
