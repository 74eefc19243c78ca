/* The data of the plot of a rank's memory over a step, and reducing long series of
 * samples to what the plot can show. */
#include "plots/memory_curve_data.h"
#include "tests/test.h"

#include <math.h>

/* ---- thinning ---- */

static ms_memory_sample sample_of(double time_s, double params, double activations)
{
    ms_memory_sample sample = {.time_s = time_s};
    sample.bytes[MS_MEMORY_PARAMS] = params;
    sample.bytes[MS_MEMORY_ACTIVATIONS] = activations;
    return sample;
}

static void few_samples_stay(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_memory_sample in[] = {sample_of(0.0, 5, 0), sample_of(1.0, 5, 2),
                             sample_of(1.5, 5, 4), sample_of(4.0, 5, 1)};
    ms_thinned_samples out = ms_memory_samples_thin(cx->arena, in, 4, 4.0, 100);
    ASSERT_INT(out.num, 4);
    assert_memory_equal(out.samples, in, sizeof in);
    ASSERT_INT(out.peak, 2);
}

/* Where several samples have the same time, only the last is kept, and the peak if it is
 * among them. */
static void instants_go(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_memory_sample in[] = {sample_of(0.0, 5, 1), sample_of(1.0, 5, 0),
                             sample_of(1.0, 5, 2), sample_of(2.0, 5, 9),
                             sample_of(2.0, 5, 3)};
    ms_thinned_samples out = ms_memory_samples_thin(cx->arena, in, 5, 3.0, 100);
    ASSERT_INT(out.num, 4);
    ASSERT_NEAR(out.samples[1].bytes[MS_MEMORY_ACTIVATIONS], 2.0, 0.0);
    ASSERT_INT(out.peak, 2);
    ASSERT_NEAR(out.samples[2].bytes[MS_MEMORY_ACTIVATIONS], 9.0, 0.0);
}

#define MANY    300000
#define COLUMNS 500

static void long_tracks_keep_their_extremes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_memory_sample *in = MS_NEW_ARRAY(cx->arena, MANY, ms_memory_sample);
    for (int i = 0; i < MANY; i++)
        in[i] = sample_of(i, 7.0, 100.0 + 50.0 * sin(0.001 * i) + i % 7);
    in[123457].bytes[MS_MEMORY_ACTIVATIONS] = 1000.0;
    /* a second peak, as high as the first, but later */
    in[200001].bytes[MS_MEMORY_ACTIVATIONS] = 1000.0;
    in[250001].bytes[MS_MEMORY_ACTIVATIONS] = 0.0;
    ms_thinned_samples thin = ms_memory_samples_thin(cx->arena, in, MANY, MANY, COLUMNS);
    const ms_memory_sample *out = thin.samples;
    int peak = thin.peak, num = thin.num;
    assert_true(num <= 4 * COLUMNS && num > COLUMNS);
    ASSERT_NEAR(out[peak].time_s, 123457.0, 0.0);
    ASSERT_NEAR(out[0].time_s, 0.0, 0.0);
    ASSERT_NEAR(out[num - 1].time_s, MANY - 1.0, 0.0);
    bool again = false, lowest = false;
    for (int i = 0; i < num; i++) {
        assert_true(i == 0 || out[i].time_s > out[i - 1].time_s);
        assert_memory_equal(&out[i], &in[(int)out[i].time_s], sizeof out[i]);
        again = again || out[i].time_s == 200001.0;
        lowest = lowest || out[i].time_s == 250001.0;
    }
    assert_true(again && lowest);
}

/* ---- curves ---- */

static ms_plan plan_of(ms_schedule_kind schedule)
{
    ms_plan plan = ms_plan_default(16);
    plan.model = "8b";
    plan.cluster = "hgx-h100";
    plan.size[MS_PP] = 4;
    plan.size[MS_DP_SHARD] = 4;
    plan.global_batch = 64;
    plan.zero = 1;
    plan.schedule = schedule;
    plan.virtual_stages = schedule == MS_INTERLEAVED || schedule == MS_ZB_V ? 2 : 1;
    return plan;
}

static ms_status make_curve(ms_ctx *cx, const ms_plan *plan, long rank,
                            ms_memory_curve *curve)
{
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_plan_check(cx, plan, workload->model, MS_NOWHERE), cx);
    ms_planned *planned = MS_NEW(cx->arena, ms_planned);
    ms_planned_open(cx, workload, plan, planned);
    ms_status status =
        ms_memory_curve_make(cx, planned, &(ms_simulate_options){0}, rank, curve);
    ms_workload_close(workload);
    return status;
}

static double sum_of(const ms_memory_sample *sample)
{
    double bytes = 0.0;
    for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
        bytes += sample->bytes[part];
    return bytes;
}

static void the_worst_rank_is_the_predicted_one(void **state)
{
    (void)state;
    static const ms_schedule_kind kinds[] = {MS_1F1B,  MS_GPIPE, MS_INTERLEAVED,
                                             MS_ZB_H2, MS_ZB_V,  MS_DUALPIPE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan = plan_of(kinds[i]);
        ms_memory_curve curve;
        ASSERT_OK(make_curve(cx, &plan, -1, &curve), cx);
        double most = 0.0;
        for (int k = 0; k < curve.num_samples; k++)
            most = fmax(most, sum_of(&curve.samples[k]));
        ASSERT_NEAR(most, curve.prediction.peak_bytes, 1.0);
        ASSERT_NEAR(sum_of(&curve.samples[curve.peak]), most, 0.0);
        ASSERT_NEAR(curve.prediction.stages[curve.actor->pipeline_rank].peak_bytes, most,
                    1.0);
        assert_true(curve.num_alive > 0 && curve.num_boxes > 0);
    }
}

static void a_rank_is_shown_as_asked(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_plan plan = plan_of(MS_1F1B);
    ms_memory_curve curve;
    ASSERT_OK(make_curve(cx, &plan, 14, &curve), cx);
    ASSERT_INT(curve.rank, 14);
    ASSERT_INT(curve.actor->pipeline_rank, 3);
    ASSERT_INT(curve.actor->multiplicity, 4);
    ASSERT_INT(make_curve(cx, &plan, 16, &curve), MS_EINPUT);
    ASSERT_TEXT(test_messages(cx),
                "error: there is no rank 16\n  hint: the plan has ranks 0 to 15\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_samples_stay),
        cmocka_unit_test(instants_go),
        cmocka_unit_test(long_tracks_keep_their_extremes),
        cmocka_unit_test(the_worst_rank_is_the_predicted_one),
        cmocka_unit_test(a_rank_is_shown_as_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
