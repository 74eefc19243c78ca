/* Tensors in host memory make the round trip: random plans have the same losses,
 * gradients and weights, to the bit, as without offload. Memory that a rank gives back is
 * overwritten, and new memory holds no numbers, so that what was not copied is seen. */
#include "tests/support/run_cases.h"
#include "tests/test.h"

#include <string.h>

#define NUM_CASES TEST_CASES(24, 10)
#define NUM_STEPS 3

/* ---- memory without numbers ---- */

#define NO_NUMBER 0xFF /* four or eight of these bytes are a NaN */

static void *allocate(ms_device_rank *device, size_t bytes)
{
    void *memory = ms_backend_loop.allocate(device, bytes);
    if (memory != NULL)
        memset(memory, NO_NUMBER, bytes);
    return memory;
}

static void release(ms_device_rank *device, void *memory, size_t bytes)
{
    memset(memory, NO_NUMBER, bytes);
    ms_backend_loop.release(device, memory, bytes);
}

static ms_backend strict_backend(void)
{
    ms_backend backend = ms_backend_loop;
    backend.allocate = allocate;
    backend.release = release;
    return backend;
}

/* ---- cases ---- */

static ms_outcome run(ms_ctx *cx, const ms_run_case *c, const ms_plan *plan,
                      ms_real_type type)
{
    const ms_backend backend = strict_backend();
    ms_plan typed = *plan;
    ms_runner_options options = ms_run_options(c->model, plan, type);
    ms_outcome out;
    typed.compute = type == MS_REAL_FP64 ? MS_FP64 : MS_FP32;
    options.num_steps = NUM_STEPS;
    ASSERT_OK(ms_run_plan(cx, c->model, &typed, "meshsim", &backend, &options, &out), cx);
    return out;
}

static bool are_equal(const ms_safe_file *got, const ms_safe_file *want)
{
    bool equal = got->num_tensors == want->num_tensors;
    for (int i = 0; equal && i < got->num_tensors; i++)
        equal = memcmp(got->tensors[i].values, want->tensors[i].values,
                       (size_t)got->tensors[i].count * sizeof(double)) == 0;
    return equal;
}

/* Whether the case has the same numbers with what `offloaded` keeps in host memory. */
static bool agrees(ms_ctx *cx, const ms_run_case *c, const ms_plan *offloaded,
                   ms_real_type type)
{
    ms_outcome want = run(cx, c, &c->plan, type), got = run(cx, c, offloaded, type);
    bool equal = memcmp(got.losses, want.losses, NUM_STEPS * sizeof(double)) == 0 &&
                 memcmp(got.gradient_norms, want.gradient_norms,
                        NUM_STEPS * sizeof(double)) == 0 &&
                 are_equal(&got.gradients, &want.gradients) &&
                 are_equal(&got.updated, &want.updated);
    bool used = got.ranks[0].ledger.host_peak_bytes > 0.0;
    if (!equal || !used || got.ranks[0].ledger.host_bytes < 0.0)
        printf("%s, %s: last loss %.17g, without offload %.17g\n", c->model->name,
               ms_plan_text(cx->arena, offloaded), got.losses[NUM_STEPS - 1],
               want.losses[NUM_STEPS - 1]);
    return equal && used;
}

/* `change` is made to each case before it is offloaded; NULL: none. */
static void check_cases(uint64_t seed, long num, void (*change)(ms_run_case *, long))
{
    int num_wrong = 0;
    for (long i = 0; i < num; i++) {
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_run_case c = ms_run_case_draw(&cx, &ms_run_fp64, seed, i, 0);
        if (change != NULL)
            change(&c, i);
        ms_run_case offloaded = c;
        ms_run_case_offload(&offloaded, i);
        if (!agrees(&cx, &c, &offloaded.plan, i % 2 == 0 ? MS_REAL_FP64 : MS_REAL_FP32)) {
            printf("that was case %ld of seed %llu\n", i, (unsigned long long)seed);
            num_wrong++;
        }
        ms_arena_close(cx.arena);
    }
    ASSERT_INT(num_wrong, 0);
}

static void random_plans_have_the_same_bits(void **state)
{
    (void)state;
    check_cases(61, NUM_CASES, NULL);
}

/* Sets the optimizer and the type of its moments. */
static void change_optimizer(ms_run_case *c, long number)
{
    static const ms_storage stored[] = {MS_STORE_DEFAULT, MS_STORE_BF16, MS_STORE_INT8};
    c->plan.optimizer = (ms_optimizer)(number % MS_NUM_OPTIMIZERS);
    c->plan.optimizer_dtype = stored[number / MS_NUM_OPTIMIZERS % 3];
    ms_run_case_settle_moments(c);
}

static void every_optimizer_has_the_same_bits(void **state)
{
    (void)state;
    check_cases(62, NUM_CASES, change_optimizer);
}

/* Some layers are recomputed by module, and some weights are frozen. */
static void change_layers(ms_run_case *c, long number)
{
    if (number % 2 == 0)
        ms_run_case_adapt(c, number);
    else if (c->plan.schedule != MS_CUSTOM)
        ms_run_case_choose_modules(c, number);
}

static void modules_and_adapters_have_the_same_bits(void **state)
{
    (void)state;
    check_cases(63, NUM_CASES / 2, change_layers);
}

/* Expects a run of a plan to be refused, with a message that contains `text`. */
static void expect_refusal(const ms_plan *plan, const char *stack, bool on_cpu,
                           const char *text)
{
    ms_ctx *cx = test_cx();
    const ms_model *model = ms_pubrun_model(cx->arena, ms_small_llama);
    ms_array_ops arrays = *ms_backend_loop.arrays;
    ms_backend backend = ms_backend_loop;
    ms_runner_options options = ms_run_options(model, plan, MS_REAL_FP32);
    ms_outcome out;
    if (!on_cpu)
        arrays.orthogonalize = NULL;
    backend.arrays = &arrays;
    ASSERT_INT(ms_run_plan(cx, model, plan, stack, &backend, &options, &out), MS_EINPUT);
    assert_non_null(strstr(test_messages(cx), text));
}

/* Backends on GPUs refuse by the choice's name; all do what a stack keeps in host memory
 * and they do not. */
static void what_is_not_executed_is_refused(void **state)
{
    (void)state;
    ms_plan plan = ms_run_base_plan();
    plan.offload_optimizer = MS_HOST_STATES;
    expect_refusal(&plan, "meshsim", false,
                   "does not execute --offload-optimizer states");
    plan.offload_layer_inputs = true;
    expect_refusal(&plan, "meshsim", false, "does not execute --offload-layer-inputs");
    plan.offload_activations_frac = 0.5;
    expect_refusal(&plan, "meshsim", false, "does not execute --offload-activations 0.5");
    plan = ms_run_base_plan();
    plan.offload_optimizer = MS_HOST_UPDATE;
    expect_refusal(&plan, "deepspeed", true,
                   "a run does not keep gradients in host memory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans_have_the_same_bits),
        cmocka_unit_test(every_optimizer_has_the_same_bits),
        cmocka_unit_test(modules_and_adapters_have_the_same_bits),
        cmocka_unit_test(what_is_not_executed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
