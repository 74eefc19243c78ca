/* A rank starts to receive the input of its next action before the kernels of the current
 * one, so that messages between stages pass during compute. */
#include "sim/simulate/move_names.h"
#include "tests/support/run_plan.h"
#include "tests/test.h"

#include <stdatomic.h>

#define MOST_OPEN 8

/* Receives of this rank (a thread) that were started and not waited for. */
static _Thread_local struct opened {
    ms_event event;
    long kernels; /* kernels of the rank before the start */
} opened[MOST_OPEN];
static _Thread_local int num_opened;
static _Thread_local long num_kernels;

/* Receives of all ranks: in all, and those started and waited for with kernels between. */
static atomic_long num_receives, num_ahead;

static ms_status count_kernel(ms_ctx *cx, ms_device_rank *device, const ms_op_call *call)
{
    num_kernels++;
    return ms_backend_loop.kernel(cx, device, call);
}

static ms_status note_start(ms_ctx *cx, ms_device_rank *device, const ms_transfer *t,
                            const ms_event *after, int num_after, ms_event *done)
{
    ms_status status = ms_backend_loop.start(cx, device, t, after, num_after, done);
    bool is_input = strcmp(t->name, MS_MOVE_ACTIVATIONS) == 0 ||
                    strcmp(t->name, MS_MOVE_GRADIENTS) == 0;
    if (t->kind == MS_TRANSFER_RECEIVE && is_input && status == MS_OK) {
        assert_true(num_opened < MOST_OPEN);
        opened[num_opened++] = (struct opened){*done, num_kernels};
    }
    return status;
}

static ms_status note_wait(ms_ctx *cx, ms_device_rank *device, ms_event event)
{
    for (int i = 0; i < num_opened; i++) {
        if (opened[i].event != event)
            continue;
        num_receives++;
        num_ahead += num_kernels > opened[i].kernels;
        opened[i] = opened[--num_opened];
        break;
    }
    return ms_backend_loop.wait(cx, device, event);
}

/* Runs one step of pp stages; every rank's first receive of the step has no action before
 * it that it could overlap, if its first action receives. */
static void check(ms_schedule_kind schedule, long virtual_stages, long first_waits)
{
    ms_ctx *cx = test_cx();
    ms_backend backend = ms_backend_loop;
    backend.kernel = count_kernel;
    backend.start = note_start;
    backend.wait = note_wait;
    num_receives = num_ahead = 0;
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_plan plan = ms_run_base_plan();
    plan.gpus = plan.size[MS_PP] = 2;
    plan.schedule = schedule;
    plan.virtual_stages = virtual_stages;
    plan.microbatch = 1;
    plan.compute = MS_FP64;
    ms_runner_options options = ms_run_options(model, &plan, MS_REAL_FP64);
    options.num_steps = 1;
    ms_outcome out;
    ASSERT_OK(ms_run_plan(cx, model, &plan, "ideal", &backend, &options, &out), cx);
    assert_true(num_receives > 4);
    ASSERT_INT(num_receives - num_ahead, first_waits);
}

static void next_input_passes_during_compute(void **state)
{
    (void)state;
    check(MS_1F1B, 1, 1);
    check(MS_GPIPE, 1, 1);
    check(MS_INTERLEAVED, 2, 1);
    check(MS_ZB_H1, 1, 1);
}

/* Both inputs of a forward and a backward that run together are received ahead. */
static void inputs_of_pairs_pass_during_compute(void **state)
{
    (void)state;
    check(MS_DUALPIPE, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_input_passes_during_compute),
        cmocka_unit_test(inputs_of_pairs_pass_during_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
