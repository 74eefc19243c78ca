/* Files of plans and searches among results: their order, their places in a search, and
 * what is refused. Results of runs and traces: tests/exec/runner/test_measured.c. */
#include "sim/result/result_file.h"
#include "tests/test.h"

#include <unistd.h>

#define SEARCH     "tests/data/compare/search.json"
#define PREDICTION "tests/data/compare/predicted.json"
#define PLAN       "configs/plans/llama-3.1-70b-512.json"

static void results_keep_the_order_of_files_and_plans(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_results results = {0};
    ASSERT_OK(ms_results_add_file(cx, PREDICTION, &results), cx);
    ASSERT_OK(ms_results_add_file(cx, SEARCH, &results), cx);
    ASSERT_OK(ms_results_add_file(cx, PLAN, &results), cx);
    ASSERT_INT(results.num, 7);
    ASSERT_INT(results.items[0].kind, MS_RESULT_PREDICTION);
    for (int i = 1; i < 6; i++) {
        ASSERT_INT(results.items[i].kind, MS_RESULT_PLAN);
        ASSERT_INT(results.items[i].search_rank, i);
        ASSERT_TEXT(results.items[i].path, SEARCH);
        assert_true(i == 1 || results.items[i].step_s >= results.items[i - 1].step_s);
    }
    ASSERT_INT(results.items[1].made_for->size[MS_DP_SHARD], 32);
    ASSERT_NEAR(results.items[1].fits_probability, 0.9634, 1e-3);
    ASSERT_INT(results.items[6].search_rank, 0);
    assert_true(isnan(results.items[6].step_s));
}

static void a_plan_takes_the_figures_of_its_prediction(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_results results = {0};
    ASSERT_OK(ms_results_add_file(cx, PLAN, &results), cx);
    ms_prediction prediction = {.step_s = 2.0,
                                .compute_s = 1.5,
                                .host_s = 0.5,
                                .peak_bytes = 10.0,
                                .outside_bytes = 3.0,
                                .fits_probability = 0.5};
    prediction.memory[MS_MEMORY_GRADS] = 4.0;
    ms_result_predicted(&results.items[0], &prediction);
    ASSERT_NEAR(results.items[0].times_s[MS_RESULT_COMPUTE], 1.5, 0);
    ASSERT_NEAR(results.items[0].times_s[MS_RESULT_HOST], 0.5, 0);
    ASSERT_NEAR(results.items[0].device_bytes, 13.0, 0);
    ASSERT_NEAR(results.items[0].memory[MS_MEMORY_GRADS], 4.0, 0);
    ASSERT_NEAR(results.items[0].fits_probability, 0.5, 0);
}

static void assert_refused(const char *text)
{
    char path[] = "/tmp/meshsim-result-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    ms_ctx *cx = test_cx();
    ms_results results = {0};
    ms_status status = ms_results_add_file(cx, path, &results);
    (void)remove(path);
    ASSERT_INT(status, MS_EINPUT);
    assert_true(cx->num_errors > 0);
}

static void malformed_searches_and_plans_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "{\"schema\": \"meshsim.search/1\"}",
        "{\"schema\": \"meshsim.search/1\", \"plans\": {}}",
        "{\"schema\": \"meshsim.search/1\", \"plans\": []}",
        "{\"schema\": \"meshsim.search/1\", \"plans\": [1]}",
        "{\"schema\": \"meshsim.search/1\", \"plans\": [{\"prediction\": 1}]}",
        "{\"schema\": \"meshsim.search/1\", \"plans\": [{\"prediction\": {\"step_s\": "
        "null}}]}",
        "{\"schema\": \"meshsim.plan/1\", \"gpus\": -1}",
        "{\"schema\": \"meshsim.cluster/1\"}",
        "{\"schema\": {}}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_refused(texts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_keep_the_order_of_files_and_plans),
        cmocka_unit_test(a_plan_takes_the_figures_of_its_prediction),
        cmocka_unit_test(malformed_searches_and_plans_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
