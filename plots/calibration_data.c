#include "plots/calibration_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "sim/validate/row_errors.h"

#include <math.h>
#include <string.h>

#define LEFT         92.0
#define RIGHT        30.0
#define TOP          88.0
#define BOTTOM       58.0
#define PANEL        520.0
#define LEGEND_SPACE 24.0
#define LETTER       7.0  /* mean width of a letter of the legend, pixels */
#define MARGIN       1.25 /* factor between the extreme points and the axes */

/* ---- points ---- */

static int group_index(ms_calibration_plot *plot, const char *name)
{
    for (int i = 0; i < plot->num_groups; i++)
        if (strcmp(plot->groups[i].name, name) == 0)
            return i;
    if (plot->num_groups == MS_MAX_CALIBRATED_GROUPS)
        return MS_MAX_CALIBRATED_GROUPS - 1;
    bool is_last = plot->num_groups == MS_MAX_CALIBRATED_GROUPS - 1;
    plot->groups[plot->num_groups] =
        (ms_calibrated_group){.name = is_last ? "others" : name};
    return plot->num_groups++;
}

static void add_point(ms_calibration_plot *plot, const char *group, double measured_s,
                      double fitted_s)
{
    if (!(measured_s > 0.0) || !(fitted_s > 0.0) || isinf(fitted_s))
        return;
    int index = group_index(plot, group);
    plot->groups[index].num_points++;
    MS_MAKE_ROOM(plot->arena, plot->points, plot->num_points, plot->capacity, 256);
    plot->points[plot->num_points++] = (ms_calibrated_point){measured_s, fitted_s, index};
}

static void add_products(const ms_pricer *pricer, const ms_sweep_rows *rows,
                         ms_calibration_plot *plot)
{
    double bytes = ms_stored_bytes(pricer->compute);
    for (int i = 0; i < rows->num; i++) {
        const double *row = rows->values + (ptrdiff_t)i * MS_GEMM_COLUMNS;
        ms_gemm_shape shape = {row[0], row[1], row[2], row[3], bytes, bytes};
        add_point(plot, "GEMM", row[4], ms_gemm_kernel_s(pricer, shape));
    }
}

static void add_attention(const ms_pricer *pricer, const ms_sweep_rows *rows,
                          bool backward, ms_calibration_plot *plot)
{
    for (int i = 0; i < rows->num; i++) {
        const double *row = rows->values + (ptrdiff_t)i * MS_ATTENTION_COLUMNS;
        ms_attention_shape shape = {.flop = row[0],
                                    .key_tokens = row[1],
                                    .head_dim = row[2],
                                    .score_elements = row[3],
                                    .traffic_bytes = row[4],
                                    .query_rows = row[3] / row[1],
                                    .backward = backward};
        add_point(plot, backward ? "attention backward" : "attention forward", row[5],
                  ms_attention_s(pricer, shape));
    }
}

static void add_curve(const ms_cluster *cluster, const ms_profile *profile,
                      const ms_sweep_curve *curve, ms_calibration_plot *plot)
{
    const ms_group group = {
        .size = curve->ranks, .num_modes = 1, .modes = {{curve->ranks, 1}}};
    ms_span span = ms_group_span(&group, curve->ranks, cluster);
    ms_collective_law law =
        ms_collective_law_make((ms_collective)curve->collective, &span, cluster, profile);
    law.measured = NULL;
    for (int i = 0; i < curve->rows.num; i++) {
        const double *row = curve->rows.values + (ptrdiff_t)i * MS_CURVE_COLUMNS;
        add_point(plot, ms_collective_names[curve->collective], row[1],
                  ms_collective_s(&law, row[0]));
    }
}

ms_status ms_calibration_plot_add_profile(ms_ctx *cx, const ms_cluster *cluster,
                                          const ms_profile *profile,
                                          const ms_stack *stack,
                                          ms_calibration_plot *plot)
{
    const ms_sweep *measured = profile->measured;
    ms_pricer pricer;
    MS_TRY(
        ms_pricer_make(cx, cluster, profile, stack, (ms_dtype)measured->dtype, &pricer));
    pricer.products = NULL;
    pricer.attention[0] = pricer.attention[1] = NULL;
    add_products(&pricer, &measured->products, plot);
    for (int backward = 0; backward < 2; backward++)
        add_attention(&pricer, &measured->attention[backward], backward == 1, plot);
    for (int i = 0; i < measured->num_curves; i++)
        add_curve(cluster, profile, &measured->curves[i], plot);
    return MS_OK;
}

void ms_calibration_plot_add_kernels(const ms_kernel_validation *kernels,
                                     ms_calibration_plot *plot)
{
    for (int i = 0; i < kernels->rows->num_rows; i++) {
        const ms_kernel_row *row = &kernels->rows->rows[i];
        if (row->reason == NULL)
            add_point(plot, row->op, row->measured_s, kernels->predicted_s[i]);
    }
}

void ms_calibration_plot_add_collectives(const ms_collective_validation *collectives,
                                         ms_calibration_plot *plot)
{
    for (int i = 0; i < collectives->rows->num_rows; i++) {
        const ms_collective_row *row = &collectives->rows->rows[i];
        if (row->reason == NULL)
            add_point(plot, ms_collective_names[row->collective], row->measured_s,
                      collectives->predicted_s[i]);
    }
}

/* ---- words ---- */

/* Errors of the points of one group, or of all (`group` < 0). */
static ms_row_errors errors_of(const ms_calibration_plot *plot, int group)
{
    double *errors = MS_NEW_ARRAY(plot->arena, plot->num_points, double);
    int num = 0;
    for (int i = 0; i < plot->num_points; i++) {
        const ms_calibrated_point *point = &plot->points[i];
        if (group < 0 || point->group == group)
            errors[num++] = point->fitted_s / point->measured_s - 1.0;
    }
    return ms_row_errors_of(plot->arena, errors, num);
}

static const char *title(const ms_calibration_plot *plot)
{
    return ms_arena_printf(plot->arena,
                           "Fitted times: median error %.1f %% of %d point%s",
                           100.0 * errors_of(plot, -1).median_ape_frac, plot->num_points,
                           plot->num_points == 1 ? "" : "s");
}

static const char *subtitle(const ms_calibration_plot *plot)
{
    return ms_arena_printf(plot->arena, "%s · shaded: within 10 %% and 25 %%",
                           plot->name);
}

/* "GEMM (45, 6.0 %)": points and median error */
static const char *group_text(const ms_calibration_plot *plot, int group)
{
    return ms_arena_printf(plot->arena, "%s (%d, %.1f %%)", plot->groups[group].name,
                           plot->groups[group].num_points,
                           100.0 * errors_of(plot, group).median_ape_frac);
}

/* ---- files ---- */

void ms_calibration_plot_write_data(FILE *out, const ms_calibration_plot *plot)
{
    fputs("# measured (us)\tfitted (us)\tkind\tname\n", out);
    for (int i = 0; i < plot->num_points; i++) {
        const ms_calibrated_point *point = &plot->points[i];
        ms_print(out, "%.9g\t%.9g\t%d\t", 1e6 * point->measured_s, 1e6 * point->fitted_s,
                 point->group + 1);
        ms_data_text(out, plot->groups[point->group].name);
        fputc('\n', out);
    }
}

ms_status ms_calibration_plot_write_script(ms_ctx *cx, FILE *out,
                                           const ms_calibration_plot *plot,
                                           const char *name, ms_picture_format format)
{
    double low_s = INFINITY, high_s = 0.0;
    size_t longest = 0;
    for (int i = 0; i < plot->num_points; i++) {
        const ms_calibrated_point *p = &plot->points[i];
        low_s = ms_min(low_s, ms_min(p->measured_s, p->fitted_s));
        high_s = ms_max(high_s, ms_max(p->measured_s, p->fitted_s));
    }
    for (int i = 0; i < plot->num_groups; i++) {
        size_t length = strlen(group_text(plot, i));
        longest = length > longest ? length : longest;
    }
    ms_logarithmic_range range =
        ms_logarithmic_range_of(1e6 * low_s / MARGIN, 1e6 * high_s * MARGIN);
    double legend = LEFT + PANEL + LEGEND_SPACE;
    ms_script script = {.kind = "validation", /* the same picture with one panel */
                        .name = name,
                        .format = format,
                        .width = legend + LETTER * (double)longest + RIGHT,
                        .height = TOP + PANEL + BOTTOM,
                        .margins = {LEFT, RIGHT, TOP, BOTTOM},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "panel", PANEL);
    ms_script_number(out, "between", 0.0);
    ms_script_number(out, "legend", legend);
    ms_script_text(out, "unit_time", "us");
    ms_script_text(out, "predicted", "fitted");
    ms_script_number(out, "num_time", plot->num_points);
    ms_script_text(out, "title_time", "time of a kernel or collective");
    ms_script_number(out, "low_time", range.low);
    ms_script_number(out, "high_time", range.high);
    ms_script_number(out, "num_memory", 0.0);
    ms_script_number(out, "num_sources", plot->num_groups);
    for (int i = 0; i < plot->num_groups; i++)
        ms_script_text(out, ms_arena_printf(cx->arena, "source_%d", i + 1),
                       group_text(plot, i));
    return ms_script_end(cx, out, &script);
}

void ms_calibration_plot_write_json(ms_jout *out, const ms_calibration_plot *plot)
{
    ms_row_errors all = errors_of(plot, -1);
    ms_jout_text_field(out, "name", plot->name);
    ms_row_errors_write(out, "errors", &all);
    ms_jout_begin_array_field(out, "points");
    for (int i = 0; i < plot->num_points; i++) {
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "of", plot->groups[plot->points[i].group].name);
        ms_jout_number_field(out, "measured_s", plot->points[i].measured_s);
        ms_jout_number_field(out, "fitted_s", plot->points[i].fitted_s);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_calibration_plot_print(FILE *out, const ms_calibration_plot *plot)
{
    ms_print(out, "calibration  %s\n             %s\n\n", title(plot), subtitle(plot));
    ms_table *table = MS_TABLE(plot->arena, "Lrrrr", "of", "points", "median (%)",
                               "bias (%)", "p90 (%)");
    for (int i = 0; i < plot->num_groups; i++) {
        ms_row_errors e = errors_of(plot, i);
        ms_table_cells(table, "%s\t%d\t%.1f\t%.1f\t%.1f", plot->groups[i].name,
                       e.num_rows, 100.0 * e.median_ape_frac, 100.0 * e.bias_frac,
                       100.0 * e.p90_ape_frac);
    }
    ms_table_print(table, out);
    fputc('\n', out);
}
