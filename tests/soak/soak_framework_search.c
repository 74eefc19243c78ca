/* Soak test: every plan that a search for a framework lists is one that the framework
 * accepts (tests/frameworks) and that fits with the probability asked for. A list may be
 * empty with exit status 3; what was covered is printed. */
#include "tests/support/json_values.h"
#include "tests/test.h"

#include <sys/wait.h>
#include <unistd.h>

#include "tests/frameworks/frameworks.h"

static const struct {
    const char *model;
    long gpus;
} jobs[] = {{"70b", 512},          {"8b", 64},          {"405b", 16384},
            {"mixtral-8x7b", 128}, {"qwen3-235b", 512}, {"deepseek-v3", 2048}};
static const char *const clusters[] = {"hgx-h100", "hgx-a100-80g", "hgx-b200",
                                       "gb200-nvl72"};
static const char *const stacks[] = {"megatron", "torchtitan", "nemo", "nanotron",
                                     "deepspeed"};
static const double min_fit_frac = 0.95;

#define NUM_OF(list) (sizeof(list) / sizeof *(list))

/* Runs the program; its standard output goes to `path`. Returns the exit status. */
static int run_program(ms_ctx *cx, const char *words, const char *path)
{
    const char *given = getenv("MESHSIM");
    const char *command = ms_arena_printf(
        cx->arena, "cd %s && %s %s >%s 2>/dev/null </dev/null", MS_SOURCE_DIR,
        given != NULL ? given : "build/opt/meshsim", words, path);
    int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- one search ---- */

/* Whether the framework takes a listed plan, which states the layers of its stages. */
static bool judge(ms_ctx *cx, const char *stack, ms_jval entry)
{
    ms_plan plan;
    const ms_model *model;
    ASSERT_OK(ms_plan_read(cx, test_member(cx, entry, "plan"), &plan), cx);
    ASSERT_OK(ms_model_load(cx, plan.model, &model), cx);
    double fits_frac = test_number(cx, entry, "fits_probability");
    /* nanotron cuts stages itself: published runs of 2025 tell of another law than its
     * present source (docs/formulas 5.7), so that the list in the plan is not judged */
    if (strcmp(stack, "nanotron") == 0)
        plan.num_stage_layers = 0;
    const char *broken = ms_check_framework(stack, &plan, model);
    if (broken == NULL && fits_frac >= min_fit_frac)
        return true;
    print_message("  %s: P(fit) %.3f, %s: %s\n", stack, fits_frac,
                  broken == NULL ? "legal" : broken, ms_plan_text(cx->arena, &plan));
    return false;
}

static int num_refused(ms_ctx *cx, const char *stack, const char *path, int *num_plans)
{
    ms_jdoc *doc;
    ms_jval root;
    ASSERT_OK(ms_json_load(cx, path, &doc, &root), cx);
    ms_jval plans = test_member(cx, root, "plans");
    int num = 0;
    *num_plans = ms_json_length(plans);
    for (int i = 0; i < *num_plans; i++)
        num += !judge(cx, stack, ms_json_element(cx, plans, i));
    ms_json_close(doc);
    return num;
}

static int search(const char *stack, const char *model, long gpus, const char *cluster)
{
    ms_ctx *cx = test_cx();
    char *path = ms_arena_strdup(cx->arena, "/tmp/meshsim-test-search-XXXXXX");
    int descriptor = mkstemp(path), num_plans = 0;
    assert_true(descriptor >= 0);
    close(descriptor);
    int status =
        run_program(cx,
                    ms_arena_printf(cx->arena,
                                    "search --json --quiet --stack %s --model %s "
                                    "--gpus %ld --cluster %s --min-fit %g",
                                    stack, model, gpus, cluster, min_fit_frac),
                    path);
    assert_true(status == 0 || status == 3);
    int num = status == 0 ? num_refused(cx, stack, path, &num_plans) : 0;
    print_message("  %-11s %-13s %5ld x %-13s exit status %d, %2d plans, %d refused\n",
                  stack, model, gpus, cluster, status, num_plans, num);
    remove(path);
    return num;
}

static void listed_plans_are_accepted(void **state)
{
    (void)state;
    int num = 0;
    for (size_t s = 0; s < NUM_OF(stacks); s++)
        for (size_t j = 0; j < NUM_OF(jobs); j++)
            for (size_t c = 0; c < NUM_OF(clusters); c++)
                num += search(stacks[s], jobs[j].model, jobs[j].gpus, clusters[c]);
    ASSERT_INT(num, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(listed_plans_are_accepted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
