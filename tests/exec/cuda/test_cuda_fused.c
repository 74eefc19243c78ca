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

static void run(ms_run_attention choice)
{
    if (ms_test_gpu_driver == NULL || ms_test_gpu_driver() == NULL)
        skip();
    ms_attention_library library = {.driver = ms_test_gpu_driver(), .choice = choice};
    ms_attention_cases_run_by(cases, &library);
    print_message("cuDNN ran %ld calls, own kernels %ld%s%s\n",
                  library.use.num_by_library, library.use.num_by_own,
                  library.use.why[0] != '\0' ? ": " : "", library.use.why);
    if (library.use.num_by_library == 0)
        skip(); /* no cuDNN */
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
