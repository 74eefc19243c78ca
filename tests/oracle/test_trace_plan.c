/* Tests of the trace of a plan on 64 GPUs: it is valid for trace viewers, and its slices
 * sum to the prediction. */
#include "sim/simulate/trace.h"
#include "sim/step/prediction.h"
#include "tests/support/trace_check.h"
#include "tests/test.h"

typedef struct bench {
    ms_ctx *cx;
    ms_plan plan;
    ms_workload *workload;
    ms_planned planned;
} bench;

/* Opens llama-3.1-8b with pp 4 x dp 4 x tp 4 and 8 micro-batches of 4096 tokens. */
static bench *open_bench(ms_schedule_kind schedule, long virtual_stages)
{
    ms_ctx *cx = test_cx();
    bench *b = MS_NEW(cx->arena, bench);
    b->cx = cx;
    b->plan = ms_plan_default(64);
    b->plan.model = "8b";
    b->plan.size[MS_PP] = b->plan.size[MS_TP] = b->plan.size[MS_DP_SHARD] = 4;
    b->plan.zero = 1;
    b->plan.sequence_length = 4096;
    b->plan.global_batch = 32;
    b->plan.schedule = schedule;
    b->plan.virtual_stages = virtual_stages;
    ms_plan_fill_defaults(&b->plan);
    ASSERT_OK(ms_workload_open(cx, &b->plan, &b->workload), cx);
    ASSERT_OK(ms_plan_check(cx, &b->plan, b->workload->model, MS_NOWHERE), cx);
    ms_planned_open(cx, b->workload, &b->plan, &b->planned);
    return b;
}

static ms_simulation *simulate(bench *b, ms_simulate_options options)
{
    ms_simulation *s = MS_NEW(b->cx->arena, ms_simulation);
    ASSERT_OK(ms_simulate(b->cx, &b->planned, &options, s), b->cx);
    return s;
}

static ms_trace_facts *trace(bench *b, const ms_simulation *s)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_trace_write(file, b->cx->arena, s, &(ms_trace_options){0});
    const char *text = test_read_back(b->cx->arena, file);
    ms_trace_facts *facts = MS_NEW(b->cx->arena, ms_trace_facts);
    const char *wrong = ms_trace_check(b->cx, text, strlen(text), facts);
    if (wrong != NULL)
        fail_msg("%s", wrong);
    ASSERT_INT(facts->step_end_ns, llround(s->step_s * 1e9));
    return facts;
}

/* Expects that the slices of each pipeline rank's compute thread sum to the predicted
 * compute time without the optimizer, to 1 ns a slice. */
static void expect_prediction(bench *b, const ms_simulation *s)
{
    const ms_trace_facts *facts = trace(b, s);
    ms_prediction prediction;
    (void)ms_predict_planned(b->cx, &b->planned, &prediction);
    ASSERT_INT(facts->step_end_ns, llround(prediction.step_s * 1e9));
    for (int i = 0; i < s->num_actors; i++) {
        const ms_actor *actor = &s->actors[i];
        const ms_trace_process *process = &facts->processes[i];
        double busy_s = prediction.stages[actor->pipeline_rank].busy_s;
        double shown_s = (double)process->compute_ns * 1e-9;
        double update_s = actor->optimizer_s - b->planned.pipeline.world_sync_s;
        assert_true(fabs(shown_s - update_s - busy_s) <= 1e-9 * process->num_slices);
        assert_true(process->num_counters > 0);
        assert_true((double)process->end_ns <= s->step_s * 1e9 + 1.0);
    }
}

static void slices_add_up_to_the_prediction(void **state)
{
    (void)state;
    static const struct {
        ms_schedule_kind schedule;
        long virtual_stages;
        /* flow arrows: forward and backward, for every micro-batch and stage boundary */
        int arrows;
    } cases[] = {{MS_1F1B, 1, 2 * 8 * 3},
                 {MS_GPIPE, 1, 2 * 8 * 3},
                 {MS_INTERLEAVED, 2, 2 * 8 * 7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bench *b = open_bench(cases[i].schedule, cases[i].virtual_stages);
        const ms_simulation *s = simulate(b, (ms_simulate_options){0});
        ASSERT_INT(s->num_actors, 4);
        expect_prediction(b, s);
        ASSERT_INT(trace(b, s)->num_flows, cases[i].arrows);
        ms_workload_close(b->workload);
    }
}

/* Traces are valid for simulations with every rank as a process, slow ranks, jitter, and
 * a slice per program node. */
static void every_simulation_has_a_clean_trace(void **state)
{
    (void)state;
    bench *b = open_bench(MS_1F1B, 1);
    ms_simulate_options options = {.engine = MS_ENGINE_EVENT, .unfolded = true};
    const ms_simulation *all = simulate(b, options);
    ASSERT_INT(trace(b, all)->num_flows, 2 * 8 * 3 * 16);
    options.jitter_frac = 0.1;
    options.rendezvous = true;
    (void)trace(b, simulate(b, options));
    options = (ms_simulate_options){
        .engine = MS_ENGINE_EVENT, .num_slow = 1, .slow = {{.rank = 5, .factor = 1.3}}};
    (void)trace(b, simulate(b, options));
    options.detail = MS_DETAIL_NODE;
    (void)trace(b, simulate(b, options));
    ms_workload_close(b->workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_add_up_to_the_prediction),
        cmocka_unit_test(every_simulation_has_a_clean_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
