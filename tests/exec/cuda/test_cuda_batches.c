/* Tests of token buffers on a GPU (exec/cuda/cuda_backend_kernels.c): kernels read the
 * tokens of their own micro-batch, however many later ones are queued first. The fake
 * device copies as late as it may. */
#include "exec/cuda/cuda_backend_priv.h"
#include "tests/support/cuda_backend.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/transfer_checks.h"
#include "tests/test.h"

#define LENGTH     7
#define NUM_ROUNDS (3 * MS_CUDA_BATCHES)

/* Tokens, targets and positions of a micro-batch, copied on the device where a kernel
 * would read them. */
typedef struct seen {
    int tokens[LENGTH], targets[LENGTH], positions[LENGTH];
} seen;

static ms_status look(ms_ctx *cx, ms_device_rank *d, const ms_batch *batch, seen *to)
{
    ms_op_call call = {.batch = batch};
    ms_cuda_batch got;
    size_t bytes = (size_t)(batch->num_sequences * batch->sequence_length) * sizeof(int);
    MS_TRY(ms_cuda_batch_of(cx, d, &call, &got));
    if (got.sequence_length != batch->sequence_length ||
        (got.positions == NULL) != (batch->positions == NULL))
        return ms_fail(cx, MS_ECHECK, MS_NOWHERE, "another batch");
    MS_TRY(d->driver->copy(cx, d->compute, to->tokens, got.tokens, bytes,
                           MS_CUDA_ON_DEVICE));
    MS_TRY(d->driver->copy(cx, d->compute, to->targets, got.targets, bytes,
                           MS_CUDA_ON_DEVICE));
    if (batch->positions == NULL)
        return MS_OK;
    return d->driver->copy(cx, d->compute, to->positions, got.positions, bytes,
                           MS_CUDA_ON_DEVICE);
}

static ms_status run_one_rank(ms_ctx *cx, ms_rank_main *main, void *state)
{
    ms_plan plan = ms_check_plan((long[]){1, 1, 1, 1, 1}, 1);
    ms_world world = ms_world_make(cx->arena, &plan);
    ms_cuda_backend backend = ms_test_cuda_backend(MS_CUDA_BY_NCCL);
    ms_backend_job job = {.backend = &backend.table, .world = &world};
    MS_TRY(job.backend->open(cx, &job));
    ms_status status = job.backend->run(cx, &job, main, state);
    job.backend->close(&job);
    return status;
}

/* Whether a micro-batch of the test has positions; all that have them are equally
 * long. */
static bool has_positions(int round)
{
    return round < 2 * MS_CUDA_BATCHES;
}

static long length_of(int round)
{
    return has_positions(round) || round % 3 == 0 ? LENGTH : LENGTH - 3;
}

/* Queues more micro-batches than the device keeps buffers for, of varying lengths, some
 * unnumbered; the host's tokens are overwritten after each call. */
static ms_status all_rounds(ms_ctx *cx, ms_device_rank *d, long rank, void *state)
{
    (void)rank;
    seen *got = state;
    size_t bytes = NUM_ROUNDS * sizeof *got;
    int tokens[LENGTH], targets[LENGTH];
    static long positions[2][LENGTH];
    seen *on_device = ms_cuda_memory_take(d->memory, bytes);
    for (int i = 0; i < NUM_ROUNDS; i++) {
        for (int j = 0; j < LENGTH; j++) {
            tokens[j] = 100 * i + j;
            targets[j] = 100 * i + 50 + j;
            if (has_positions(i))
                positions[i / MS_CUDA_BATCHES][j] = 10 * (i / MS_CUDA_BATCHES) + j;
        }
        ms_batch batch = {.num_sequences = 1,
                          .sequence_length = length_of(i),
                          .tokens = tokens,
                          .targets = targets,
                          .positions =
                              has_positions(i) ? positions[i / MS_CUDA_BATCHES] : NULL,
                          .number = i % 5 == 0 ? 0 : (unsigned long)i + 1};
        MS_TRY(look(cx, d, &batch, &on_device[i]));
    }
    MS_TRY(d->driver->copy(cx, d->compute, got, on_device, bytes, MS_CUDA_TO_HOST));
    ms_cuda_memory_give(d->memory, on_device);
    return MS_OK;
}

static void compare(const seen *got, int round)
{
    for (int j = 0; j < length_of(round); j++) {
        ASSERT_INT(got->tokens[j], 100 * round + j);
        ASSERT_INT(got->targets[j], 100 * round + 50 + j);
        if (has_positions(round))
            ASSERT_INT(got->positions[j], 10 * (round / MS_CUDA_BATCHES) + j);
    }
}

static void kernels_read_their_own_tokens(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 6; seed++) {
        ms_ctx *cx = test_cx();
        ms_cuda_fake_begin(&(ms_cuda_fake_options){.seed = seed});
        seen got[NUM_ROUNDS];
        ASSERT_OK(run_one_rank(cx, all_rounds, got), cx);
        ms_cuda_fake_end();
        for (int i = 0; i < NUM_ROUNDS; i++)
            compare(&got[i], i);
    }
}

/* Forward and backward of a micro-batch share one copy of its tokens. */
static ms_status twice(ms_ctx *cx, ms_device_rank *d, long rank, void *state)
{
    (void)rank;
    long *num_copies = state;
    const int tokens[LENGTH] = {1, 2, 3, 4, 5, 6, 7};
    ms_batch batch = {.num_sequences = 1,
                      .sequence_length = LENGTH,
                      .tokens = tokens,
                      .targets = tokens,
                      .number = 9};
    ms_op_call call = {.batch = &batch};
    ms_cuda_batch first, second;
    MS_TRY(ms_cuda_batch_of(cx, d, &call, &first));
    long num = ms_cuda_fake_calls(MS_FAKE_COPY);
    MS_TRY(ms_cuda_batch_of(cx, d, &call, &second));
    *num_copies = ms_cuda_fake_calls(MS_FAKE_COPY) - num;
    return first.tokens == second.tokens && first.targets == second.targets
               ? MS_OK
               : ms_fail(cx, MS_ECHECK, MS_NOWHERE, "another place");
}

static void a_batch_is_copied_once(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_cuda_fake_begin(NULL);
    long num_copies = -1;
    ASSERT_OK(run_one_rank(cx, twice, &num_copies), cx);
    ms_cuda_fake_end();
    ASSERT_INT(num_copies, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_read_their_own_tokens),
        cmocka_unit_test(a_batch_is_copied_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
