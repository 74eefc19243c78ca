/* Tests of the CUDA kernel emulation (tests/support/cuda_emulated.h): kernels give a
 * GPU's numbers, and mistakes of a kernel are found. */
#include "base/rng.h"
#include "tests/support/cuda_emulated.h"
#include "tests/support/cuda_samples.h"
#include "tests/test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define SEES_ENDS_OF_ARRAYS 1
#else
#define SEES_ENDS_OF_ARRAYS 0
#endif

#define NUM_SEEDS 6

static ms_rng rng_of_test(uint64_t key)
{
    return ms_rng_split(ms_rng_seed(20261122), key);
}

/* ---- order ---- */

static bool is_reversed(int num_blocks, int threads, bool has_barrier)
{
    int from[8 * MS_SAMPLE_THREADS], to[8 * MS_SAMPLE_THREADS];
    ms_rng rng = rng_of_test((uint64_t)threads);
    for (int i = 0; i < num_blocks * threads; i++)
        from[i] = (int)ms_rng_below(&rng, 1000000);
    ms_sample_reverse(to, from, num_blocks, threads, has_barrier);
    bool same = true;
    for (int i = 0; i < num_blocks * threads; i++)
        same = same && to[i] == from[i / threads * threads + threads - 1 - i % threads];
    return same;
}

static void a_missing_barrier_gives_wrong_numbers(void **state)
{
    (void)state;
    for (unsigned long seed = 0; seed < NUM_SEEDS; seed++) {
        ms_cuda_emulated_set_seed(seed);
        for (int threads = 2; threads <= MS_SAMPLE_THREADS; threads += 21) {
            assert_true(is_reversed(3, threads, true));
            assert_false(is_reversed(3, threads, false));
        }
    }
}

static bool are_sums(bool has_barrier)
{
    enum {
        NUM = 5,
        THREADS = 96
    };
    int from[NUM * THREADS], want[NUM] = {0}, got[NUM];
    ms_rng rng = rng_of_test(3);
    for (int i = 0; i < NUM * THREADS; i++)
        want[i / THREADS] += from[i] = (int)ms_rng_below(&rng, 1000);
    ms_sample_rounds(got, from, NUM, THREADS, has_barrier);
    return memcmp(got, want, sizeof got) == 0;
}

/* A missing barrier before shared memory is reused gives wrong sums for some seeds: those
 * where one warp runs far ahead. */
static void memory_that_is_used_again_too_early_gives_wrong_numbers(void **state)
{
    (void)state;
    int num_seen = 0;
    for (unsigned long seed = 0; seed < NUM_SEEDS; seed++) {
        ms_cuda_emulated_set_seed(seed);
        assert_true(are_sums(true));
        bool is_seen = !are_sums(false);
        num_seen += is_seen;
        if (seed == 1)
            assert_true(is_seen);
    }
    assert_true(num_seen > 1);
}

static void threads_have_their_places(void **state)
{
    (void)state;
    const unsigned grid[3] = {3, 2, 5}, block[3] = {7, 3, 2};
    enum {
        NUM = 3 * 2 * 5 * 7 * 3 * 2
    };
    for (unsigned long seed = 0; seed < NUM_SEEDS; seed++) {
        int visits[NUM] = {0};
        ms_cuda_emulated_set_seed(seed);
        unsigned long before = ms_cuda_emulated_num_launches();
        ms_sample_visit(visits, grid, block);
        ASSERT_INT(ms_cuda_emulated_num_launches(), before + 1);
        for (int i = 0; i < NUM; i++)
            ASSERT_INT(visits[i], 1);
    }
}

static void fresh_shared_memory_is_no_number(void **state)
{
    (void)state;
    float found[32] = {0};
    ms_sample_fresh(found);
    for (int i = 0; i < 32; i++)
        assert_true(isnan(found[i]));
}

/* ---- warps ---- */

static void sums_and_votes_are_of_all_threads(void **state)
{
    (void)state;
    for (int threads = 32; threads <= 1024; threads += 31 * 32) {
        for (unsigned long seed = 0; seed < NUM_SEEDS; seed++) {
            double x[1024], got[5], sum = 0, largest = -HUGE_VAL;
            unsigned votes = 0;
            ms_rng rng = rng_of_test(seed);
            for (int i = 0; i < threads; i++) {
                /* whole numbers, whose sums are exact */
                x[i] = (double)ms_rng_below(&rng, 1UL << 20) - (1 << 19);
                sum += x[i];
                largest = fmax(largest, x[i]);
                votes |= i < 32 && x[i] > 0 ? 1U << i : 0;
            }
            ms_cuda_emulated_set_seed(seed);
            ms_sample_sums(got, x, threads);
            ASSERT_NEAR(got[0], sum, 0);
            ASSERT_NEAR(got[1], sum, 0);
            ASSERT_NEAR(got[2], largest, 0);
            ASSERT_NEAR(got[3], x[5], 0);
            ASSERT_NEAR(got[4], votes, 0);
        }
    }
}

/* ---- tensor cores ---- */

static float from_bf16(unsigned short bits)
{
    uint32_t word = (uint32_t)bits << 16;
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

/* Whether the emulated tensor-core product is exact (all operands are short enough);
 * without `waits` it does not wait for its asynchronous copies. */
static bool is_product(bool waits)
{
    _Alignas(16) unsigned short a[16 * 16], b[16 * 8];
    float c[16 * 8];
    ms_rng rng = rng_of_test(7);
    for (int i = 0; i < 16 * 16; i++)
        a[i] = (unsigned short)(0x4000U + (ms_rng_below(&rng, 8)
                                           << 5)); /* bf16 number in 2 .. 3.75 */
    for (int i = 0; i < 16 * 8; i++)
        b[i] = (unsigned short)(0xc000U + (ms_rng_below(&rng, 8) << 5));
    ms_sample_gemm(c, a, b, waits);
    bool same = true;
    for (int row = 0; row < 16; row++) {
        for (int col = 0; col < 8; col++) {
            float sum = 0;
            for (int k = 0; k < 16; k++)
                sum += from_bf16(a[row * 16 + k]) * from_bf16(b[k * 8 + col]);
            same = same && c[row * 8 + col] == sum;
        }
    }
    return same;
}

static void fragments_lie_as_tensor_cores_have_them(void **state)
{
    (void)state;
    for (unsigned long seed = 0; seed < NUM_SEEDS; seed++) {
        ms_cuda_emulated_set_seed(seed);
        assert_true(is_product(true));
        assert_false(is_product(false)); /* asynchronous copies not waited for */
    }
}

static void bf16_is_rounded_to_nearest_even(void **state)
{
    (void)state;
    const float x[] = {1.0F,           1.00390625F,     1.01171875F, 1.00390637F,
                       -3.3895314e38F, 3.4028e38F,      0.0F,        -0.0F,
                       1e-40F,         (float)INFINITY, (float)-NAN, 1.0078125F};
    enum {
        NUM = sizeof x / sizeof *x
    };
    const unsigned short want[] = {0x3f80, 0x3f80, 0x3f82, 0x3f81, 0xff7f, 0x7f80,
                                   0,      0x8000, 0x0001, 0x7f80, 0,      0x3f81};
    unsigned short one[NUM];
    unsigned two[NUM];
    ms_sample_round(one, two, x, NUM);
    for (int i = 0; i < NUM; i++) {
        if (isnan(x[i]))
            assert_true((one[i] & 0x7fffU) > 0x7f80U);
        else
            ASSERT_INT(one[i], want[i]);
        ASSERT_INT(two[i], (unsigned)one[i] | (unsigned)one[NUM - 1 - i] << 16);
    }
}

/* ---- mistakes that end the program ---- */

static void write_static(void)
{
    ms_sample_write(MS_SAMPLE_STATIC, 32);
}
static void write_dynamic(void)
{
    ms_sample_write(MS_SAMPLE_DYNAMIC, 32);
}
static void write_stack(void)
{
    ms_sample_write(MS_SAMPLE_STACK, 33);
}
static void too_many_threads(void)
{
    ms_sample_reverse(NULL, NULL, 1, 1025, true);
}
static void no_blocks(void)
{
    ms_sample_reverse(NULL, NULL, 0, 32, true);
}

/* Runs `run` in a child process and returns its standard error if a signal or the
 * sanitizer ended it; NULL: it ended normally. */
static const char *last_words(ms_arena *arena, void (*run)(void))
{
    FILE *words = tmpfile();
    assert_non_null(words);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(fileno(words), STDERR_FILENO);
        run();
        _exit(0);
    }
    int status;
    ASSERT_INT(waitpid(child, &status, 0), child);
    fseek(words, 0, SEEK_END);
    const char *said = test_read_back(arena, words);
    return status == 0 ? NULL : said;
}

static void expect_end(void (*run)(void), const char *words)
{
    const char *said = last_words(test_cx()->arena, run);
    if (said == NULL || strstr(said, words) == NULL)
        fail_msg("said \"%s\", not \"%s\"", said == NULL ? "" : said, words);
}

static void wrong_kernels_end_the_program(void **state)
{
    (void)state;
    for (unsigned long seed = 0; seed < 3; seed++) {
        ms_cuda_emulated_set_seed(seed);
        expect_end(ms_sample_divergent, "threads wait for others that never come");
        expect_end(ms_sample_mixed_warp, "lanes of a warp are at different operations");
        expect_end(too_many_threads, "wrong number of threads");
        expect_end(no_blocks, "wrong number of blocks");
    }
}

static void ends_of_arrays_are_watched(void **state)
{
    (void)state;
    for (int memory = MS_SAMPLE_STATIC; memory <= MS_SAMPLE_STACK; memory++)
        assert_true(ms_sample_write((ms_sample_memory)memory, 31) == 1);
    if (!SEES_ENDS_OF_ARRAYS)
        skip();
    expect_end(write_static, "heap-buffer-overflow");
    expect_end(write_dynamic, "heap-buffer-overflow");
    expect_end(write_stack, "stack-buffer-overflow");
}

/* ---- several threads of the program ---- */

static void *launch_often(void *failed)
{
    for (int i = 0; i < 50; i++)
        if (!is_reversed(8, MS_SAMPLE_THREADS, true))
            *(bool *)failed = true;
    return NULL;
}

static void threads_launch_at_once(void **state)
{
    (void)state;
    enum {
        NUM = 4
    };
    pthread_t threads[NUM];
    bool failed[NUM] = {false};
    ms_cuda_emulated_set_seed(9);
    for (int i = 0; i < NUM; i++)
        ASSERT_INT(pthread_create(&threads[i], NULL, launch_often, &failed[i]), 0);
    for (int i = 0; i < NUM; i++)
        ASSERT_INT(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < NUM; i++)
        assert_false(failed[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_barrier_gives_wrong_numbers),
        cmocka_unit_test(memory_that_is_used_again_too_early_gives_wrong_numbers),
        cmocka_unit_test(threads_have_their_places),
        cmocka_unit_test(fresh_shared_memory_is_no_number),
        cmocka_unit_test(sums_and_votes_are_of_all_threads),
        cmocka_unit_test(fragments_lie_as_tensor_cores_have_them),
        cmocka_unit_test(bf16_is_rounded_to_nearest_even),
        cmocka_unit_test(wrong_kernels_end_the_program),
        cmocka_unit_test(ends_of_arrays_are_watched),
        cmocka_unit_test(threads_launch_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
