/* Attention by cuDNN on a real GPU, against the reference in fp64. Only the program that is
 * linked with nvcc's kernels (tests/exec/gpu_memory.c) has a GPU; others skip. */
#include "tests/support/attention_cases.h"
#include "tests/test.h"

static const char *const cases[] = {"b 2 s 256 n 4 g 4 d 64 w 64",
                                    "b 1 s 257 n 2 g 2 d 128 w 128",
                                    "b 1 s 200 n 8 g 2 d 128 w 128",
                                    "b 2 s 65 n 4 g 1 d 64 w 64",
                                    "b 1 s 128 n 4 g 2 d 96 w 96",
                                    "b 1 s 1 n 4 g 4 d 128 w 128",
                                    "b 1 s 130 n 2 g 2 d 256 w 256",
                                    "b 1 s 130 n 2 g 2 d 192 w 128",
                                    NULL};

/* The plainest case, whose forward the library's fused kernels have since Ampere (cuDNN
 * documentation, scaled dot product attention). */
static const char *const plain[] = {"b 2 s 256 n 4 g 4 d 64 w 64", NULL};
#define FIRST_MAJOR 8

/* Whether a library is there that must run the plain case on this GPU. */
static bool has_library(const ms_cuda_driver *driver)
{
    ms_ctx *cx = test_cx();
    ms_cuda_facts facts;
    ASSERT_OK(driver->describe(cx, 0, &facts), cx);
    return facts.cudnn_version != 0 && facts.major >= FIRST_MAJOR;
}

static void run(ms_run_attention choice)
{
    if (ms_test_gpu_driver == NULL || ms_test_gpu_driver() == NULL)
        skip();
    ms_attention_library library = {.driver = ms_test_gpu_driver(), .choice = choice};
    if (!has_library(library.driver))
        skip();
    ms_attention_cases_run_by(plain, &library);
    if (library.use.num_by_own > 0) {
        fail_msg("cuDNN refused %ld of %ld calls of %s: %s", library.use.num_by_own,
                 library.use.num_by_own + library.use.num_by_library, plain[0],
                 library.use.why);
    }
    assert_true(library.use.num_by_library > 0);
    ms_attention_cases_run_by(cases, &library);
    print_message("cuDNN ran %ld calls, own kernels %ld%s%s\n",
                  library.use.num_by_library, library.use.num_by_own,
                  library.use.why[0] != '\0' ? ": " : "", library.use.why);
}

static void attention_by_cudnn(void **state)
{
    (void)state;
    run(MS_RUN_ATTENTION_CUDNN);
}

/* Each case runs twice and must give equal bits. */
static void deterministic_attention_by_cudnn(void **state)
{
    (void)state;
    run(MS_RUN_ATTENTION_CUDNN_DETERMINISTIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_by_cudnn),
        cmocka_unit_test(deterministic_attention_by_cudnn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
