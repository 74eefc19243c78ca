/* Plots of many searches: heatmaps, costs, Pareto sets, scaling of several clusters and tornados, from data made for them. */
#include "plots/cost_data.h"
#include "plots/heatmap_data.h"
#include "plots/labels.h"
#include "plots/pareto_data.h"
#include "plots/scaling_clusters_data.h"
#include "plots/sensitivity_data.h"
#include "tests/unit/plots/picture.h"

#include <math.h>
#include <string.h>

MS_PLOT_WRITER_FUNCTIONS(ms_heatmap)
MS_PLOT_WRITER_FUNCTIONS(ms_cost_plot)
MS_PLOT_WRITER_FUNCTIONS(ms_pareto)
MS_PLOT_WRITER_FUNCTIONS(ms_scaling_clusters)
MS_PLOT_WRITER_FUNCTIONS(ms_tornado)

static const char *const sizes[] = {"1", "2",  "3",  "4",  "5",  "6",  "7",  "8",
                                    "9", "10", "11", "12", "13", "14", "15", "16"};

/* A cell with a plan whose step takes step_s; 0: too large; negative: not legal. */
static ms_best_plan cell_of(double step_s)
{
    ms_best_plan cell = {.reason = "no legal plan", .plan = ms_plan_default(8)};
    cell.found = step_s > 0.0;
    cell.too_large = step_s == 0.0;
    cell.needed_bytes = 0x1p37;
    cell.prediction = (ms_prediction){.step_s = step_s,
                                      .step_low_s = 0.9 * step_s,
                                      .step_high_s = 1.3 * step_s,
                                      .mfu_frac = 0.4 / step_s,
                                      .tokens_per_s = 1e6 / step_s};
    return cell;
}

static ms_heatmap heatmap_of(ms_ctx *cx, int columns, int rows, ms_best_plan *cells)
{
    for (int i = 0; i < columns * rows; i++)
        cells[i] = cell_of(1.0 + 0.01 * (i * 7 % 31));
    return (ms_heatmap){.arena = cx->arena,
                        .job = "8b on 8 × H100",
                        .x = {"tp", columns, sizes},
                        .y = {"reshard_after_forward", rows, sizes},
                        .cells = cells};
}

static void best_cell_is_of_the_value(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_best_plan cells[4];
    ms_heatmap plot = heatmap_of(cx, 2, 2, cells);
    cells[0] = cell_of(0.0);
    cells[1] = cell_of(3.0);
    cells[2] = cell_of(2.0);
    cells[3] = cell_of(-1.0);
    cells[1].needed_bytes = 0x1p30;
    const int best[MS_NUM_HEATMAP_VALUES] = {[MS_HEATMAP_TIME] = 2,
                                             [MS_HEATMAP_MFU] = 2,
                                             [MS_HEATMAP_MEMORY] = 1,
                                             [MS_HEATMAP_TOKENS] = 2};
    for (int value = 0; value < MS_NUM_HEATMAP_VALUES; value++) {
        plot.value = (ms_heatmap_value)value;
        ASSERT_INT(ms_heatmap_best(&plot), best[value]);
    }
    cells[1] = cells[2] = cell_of(0.0);
    ASSERT_INT(ms_heatmap_best(&plot), -1);
}

static void heatmaps_render(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_best_plan cells[256];
    ms_heatmap plot = heatmap_of(cx, 1, 1, cells);
    const ms_plot_writer writer = MS_PLOT_WRITER(ms_heatmap, &plot);
    check_picture(cx, &writer, "Fastest with tp 1", 2);
    plot = heatmap_of(cx, 16, 16, cells);
    cells[3] = cell_of(0.0);
    cells[20] = cell_of(-1.0);
    check_picture(cx, &writer, "no legal plan", 256);
    plot = heatmap_of(cx, 4, 3, cells);
    plot.value = MS_HEATMAP_MEMORY;
    check_picture(cx, &writer, "Least memory with", 12);
}

/* ---- costs ---- */

#define NUM_COSTS 14

typedef struct cost_case {
    ms_campaign_question campaign;
    ms_best_question questions[NUM_COSTS];
    ms_best_plan answers[NUM_COSTS];
    bool answered[NUM_COSTS];
    ms_plan_sweep sweep;
} cost_case;

/* `each` jobs on each of two clusters, which take half as long on twice as many GPUs and
 * cost a little more; the price is unknown if `price` is NaN. */
static cost_case *costs_of(ms_ctx *cx, int each, double price)
{
    static const char *const clusters[] = {"hgx-h100", "gb200-nvl72"};
    cost_case *c = MS_NEW(cx->arena, cost_case);
    c->campaign = (ms_campaign_question){.deadline_s = NAN, .budget = NAN};
    for (int i = 0; i < 2 * each; i++) {
        double days = 100.0 / (double)(1 << i % each);
        c->questions[i].base = ms_plan_default(8L << i % each);
        c->questions[i].base.cluster = clusters[i / each];
        c->questions[i].campaign = &c->campaign;
        c->answered[i] = true;
        ms_best_plan *answer = &c->answers[i];
        *answer = (ms_best_plan){.found = true, .has_campaign = true, .reason = NULL};
        answer->plan = c->questions[i].base;
        answer->campaign.deadline_s = answer->campaign.budget = NAN;
        answer->campaign.terms.tokens = 1e12;
        ms_campaign *to = &answer->campaign.campaign;
        to->elapsed_s = 86400.0 * days;
        to->elapsed_low_s = 0.9 * to->elapsed_s;
        to->elapsed_high_s = 1.9 * to->elapsed_s;
        to->goodput_frac = 0.95;
        to->gpu_hours = 1e5 * (1.0 + 0.05 * i);
        to->cost = price * to->gpu_hours;
    }
    c->sweep = (ms_plan_sweep){1, 2 * each, c->questions, c->answered, c->answers};
    return c;
}

static void costs_render(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    cost_case *c = costs_of(cx, 7, 2.0);
    ms_cost_plot plot = ms_cost_plot_make(cx->arena, &c->sweep, 2, "llama");
    const ms_plot_writer writer = MS_PLOT_WRITER(ms_cost_plot, &plot);
    check_picture(cx, &writer, "Cheapest: 8 × hgx-h100, 100.0 days, 200k", 14);
    c->campaign.deadline_s = 30.0 * 86400.0;
    plot.against_gpus = true;
    check_picture(cx, &writer, "within 30 days", 14);
    c = costs_of(cx, 1, (double)NAN);
    c->answers[1].found = false;
    plot = ms_cost_plot_make(cx->arena, &c->sweep, 2, "llama");
    ASSERT_INT(ms_cost_plot_num_points(&plot), 1);
    check_picture(cx, &writer, "no price known", 2); /* the other is a line of nan */
}

/* ---- Pareto sets ---- */

static void labels_have_room(void **state)
{
    (void)state;
    const ms_label_place places[] = {{0, 0},           {5, 5},  {50, 5},
                                     {(double)NAN, 0}, {5, 30}, {45, 12}};
    bool chosen[6];
    ms_labels_choose(places, 6, (ms_label_size){20, 10}, chosen);
    const bool want[] = {true, false, true, false, true, false};
    for (int i = 0; i < 6; i++)
        ASSERT_INT(chosen[i], want[i]);
}

/* Four jobs: days 100, 50, 100, 50; cost 200k to 230k. */
static void pareto_set_is_of_three_measures(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    cost_case *c = costs_of(cx, 2, 2.0);
    const double gib[] = {40, 60, 30, 60};
    for (int i = 0; i < 4; i++)
        c->answers[i].needed_bytes = gib[i] * 0x1p30;
    ms_pareto plot = ms_pareto_make(cx->arena, &c->sweep, 2, "llama");
    ASSERT_INT(plot.num, 4);
    const bool best[] = {true, true, true, false}; /* the second beats the last in cost */
    for (int i = 0; i < 4; i++)
        ASSERT_INT(plot.points[i].is_best, best[i]);
    c->answers[1] = c->answers[0];
    c->answers[2].campaign.campaign.cost = NAN;
    plot = ms_pareto_make(cx->arena, &c->sweep, 2, "llama");
    ASSERT_INT(plot.num,
               2); /* one of two equal ones; without the one that has no price */
}

static void pareto_sets_render(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    cost_case *c = costs_of(cx, 7, 2.0);
    for (int i = 0; i < 14; i++)
        c->answers[i].needed_bytes = (20.0 + 4.0 * i) * 0x1p30;
    ms_pareto plot = ms_pareto_make(cx->arena, &c->sweep, 2, "llama");
    const ms_plot_writer writer = MS_PLOT_WRITER(ms_pareto, &plot);
    check_picture(cx, &writer, "7 plans that none beats", 14);
    c = costs_of(cx, 1, (double)NAN);
    c->answers[0].needed_bytes = 0x1p35;
    c->answers[1].found = false;
    plot = ms_pareto_make(cx->arena, &c->sweep, 2, "llama");
    check_picture(cx, &writer, "1 plan that none beats", 1);
}

/* ---- scaling of several clusters ---- */

static void scaling_of_clusters_renders(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_scaling_point points[2][4];
    ms_scaling scaling[2];
    for (int k = 0; k < 2; k++) {
        scaling[k] = (ms_scaling){.arena = cx->arena,
                                  .model = "8b",
                                  .device = "GPU",
                                  .sequence_length = 4096,
                                  .limits = "",
                                  .num_points = 4,
                                  .points = points[k]};
        for (int i = 0; i < 4; i++) {
            double rate = 1e4 * (k + 1) * (double)(1 << i) * (1.0 - 0.05 * i);
            points[k][i] = (ms_scaling_point){.gpus = 8L << i, .global_batch = 64L << i};
            points[k][i].best = (ms_best_plan){.found = true, .plan = ms_plan_default(8)};
            points[k][i].best.prediction =
                (ms_prediction){.step_s = 1.0,
                                .step_low_s = 0.9,
                                .step_high_s = 1.5,
                                .tokens_per_s = rate,
                                .tokens_per_s_per_gpu = rate / (double)(8 << i),
                                .mfu_frac = 0.4 - 0.02 * i};
        }
    }
    static const char *const names[] = {"hgx-h100", "gb200-nvl72"};
    ms_scaling_clusters plot = {cx->arena, 2, names, scaling};
    const ms_plot_writer writer = MS_PLOT_WRITER(ms_scaling_clusters, &plot);
    check_picture(cx, &writer, "gb200-nvl72 is fastest, 136k tokens/s, 85 % of linear",
                  8);
    double low, high;
    ms_scaling_interval(&points[0][0], &low, &high);
    ASSERT_NEAR(low, 1e4 / 1.5, 1e-9);
    ASSERT_NEAR(high, 1e4 / 0.9, 1e-9);
    for (int i = 0; i < 4; i++) {
        points[1][i].best.found = i == 1;
        points[0][i].best.found = false;
        points[0][i].best.reason = points[1][i].best.reason = "no legal plan";
    }
    check_picture(cx, &writer, "8b on 16 GPUs: gb200-nvl72 is fastest", 1);
}

/* ---- tornados ---- */

static ms_best_plan step_of(double step_s)
{
    return (ms_best_plan){.found = step_s > 0.0,
                          .plan = ms_plan_default(8),
                          .prediction = {.step_s = step_s}};
}

/* A study of `num` numbers, the first with the largest effect; step 10 s. */
static ms_what_if *study_of(ms_ctx *cx, int num)
{
    ms_what_if *study = MS_NEW(cx->arena, ms_what_if);
    *study = (ms_what_if){.change_frac = 0.2, .num_numbers = num};
    study->kept = study->best = step_of(10.0);
    study->kept.plan.model = "8b";
    study->kept.plan.cluster = "hgx-h100";
    study->numbers = MS_NEW_ARRAY(cx->arena, num, ms_what_if_number);
    for (int i = 0; i < num; i++) {
        study->numbers[i] = (ms_what_if_number){
            .file = "cluster", .key = "hbm", .value = 5.0, .changed = {4.0, 6.0}};
        for (int side = 0; side < MS_WHAT_IF_SIDES; side++) {
            ms_what_if_outcome *o = &study->numbers[i].sides[side];
            o->kept = step_of(10.0 + (side == 0 ? 3.0 : -2.0) / (i + 1));
            o->searched = i < 3;
            o->best = o->kept;
        }
    }
    return study;
}

static void tornados_render(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_what_if *study = study_of(cx, 20);
    ms_tornado plot = {cx->arena, study};
    const ms_plot_writer writer = MS_PLOT_WRITER(ms_tornado, &plot);
    ASSERT_INT(ms_tornado_num_rows(&plot), MS_MAX_TORNADO_ROWS);
    check_picture(cx, &writer, "depends most on hbm: 20 % more, -20.0 %", 32);
    study->numbers[1].sides[0].kept = step_of(0.0);
    check_picture(cx, &writer, "none: the plan does not fit any more", 32);
    plot.study = study_of(cx, 1);
    check_picture(cx, &writer, "8b on 8 GPUs of hgx-h100", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_cell_is_of_the_value),
        cmocka_unit_test(heatmaps_render),
        cmocka_unit_test(costs_render),
        cmocka_unit_test(labels_have_room),
        cmocka_unit_test(pareto_set_is_of_three_measures),
        cmocka_unit_test(pareto_sets_render),
        cmocka_unit_test(scaling_of_clusters_renders),
        cmocka_unit_test(tornados_render),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
