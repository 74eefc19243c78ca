/* Tests of the program where no GPU can be used (GPUs are hidden by
 * CUDA_VISIBLE_DEVICES): one line gives the reason and one a remedy, whatever the build
 * has. */
#include "tests/test.h"

#include <stdbool.h>
#include <sys/wait.h>

#define MODEL                                                                            \
    " --model " MS_SOURCE_DIR "/tests/data/gpu/llama.json --seq 64 --global-batch 2"

/* beginnings of the possible reasons; what follows depends on the machine */
static const char *const reasons[] = {
    "no NVIDIA driver on this machine (libcuda.so.1)\n",
    "the NVIDIA driver is for CUDA ",
    "an NVIDIA driver (CUDA ",
    "this build has no backend cuda\n",
};

static const char *program(void)
{
    const char *given = getenv("MESHSIM");
    return given != NULL ? given : "build/opt/meshsim";
}

/* Runs the program with arguments `words`; returns its standard output, if `errors` with
 * standard error. */
static const char *told(const char *words, bool errors, int *code)
{
    ms_ctx *cx = test_cx();
    const char *command =
        ms_arena_printf(cx->arena, "cd %s && CUDA_VISIBLE_DEVICES= %s %s 2>%s </dev/null",
                        MS_SOURCE_DIR, program(), words, errors ? "&1" : "/dev/null");
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    char *text = ms_arena_alloc(cx->arena, 1 << 14);
    size_t length = fread(text, 1, (1 << 14) - 1, pipe);
    text[length] = '\0';
    int status = pclose(pipe);
    *code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return text;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void check_refused(const char *words, const char *hint)
{
    int code;
    ASSERT_TEXT(told(words, false, &code), "");
    const char *text = told(words, true, &code);
    ASSERT_INT(code, MS_EIO);
    assert_true(begins(text, "error: "));
    bool is_known = false;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        is_known = is_known || begins(text + strlen("error: "), reasons[i]);
    const char *second = strchr(text, '\n');
    const char *third = second != NULL ? strchr(second + 1, '\n') : NULL;
    if (!is_known || third == NULL || third[1] != '\0' || !begins(second + 1, hint))
        fail_msg("%s: %s", words, text);
}

static void runs_are_refused(void **state)
{
    (void)state;
    check_refused("run --backend cuda" MODEL, "  hint: --backend loop");
    check_refused("run --backend cuda --json --check --dtype fp32" MODEL,
                  "  hint: --backend loop");
    check_refused("run --backend cuda --dp-shard 2 --transport host" MODEL,
                  "  hint: --backend loop");
}

static void calibration_is_refused(void **state)
{
    (void)state;
    check_refused("calibrate --backend cuda -o /tmp/meshsim-no-gpu.json", "  hint: ");
    assert_int_not_equal(remove("/tmp/meshsim-no-gpu.json"), 0); /* no file was written */
}

static void info_says_why(void **state)
{
    (void)state;
    int code;
    const char *text = told("info", true, &code);
    ASSERT_INT(code, MS_OK);
    const char *line = strstr(text, "\nGPUs on this machine\n  none: ");
    assert_non_null(line);
    const char *run = told("run --backend cuda" MODEL, true, &code);
    const char *reason = strchr(strstr(line, "none:"), ' ') + 1;
    /* other reasons are equal in both commands */
    if (!begins(reason, "built without CUDA\n"))
        assert_true(begins(run + strlen("error: "),
                           ms_arena_printf(test_cx()->arena, "%.*s\n",
                                           (int)strcspn(reason, "\n"), reason)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_refused),
        cmocka_unit_test(calibration_is_refused),
        cmocka_unit_test(info_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
