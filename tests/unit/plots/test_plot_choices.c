/* Plots of many searches: heatmaps, from data made for them. */
#include "plots/heatmap_data.h"
#include "tests/unit/plots/picture.h"

#include <math.h>
#include <string.h>

MS_PLOT_WRITER_FUNCTIONS(ms_heatmap)

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(best_cell_is_of_the_value),
        cmocka_unit_test(heatmaps_render),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
