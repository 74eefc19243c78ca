#include "plots/scaling_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

#define LEAST_WIDTH 900.0
#define SIZE_WIDTH  118.0 /* pixels for one number of GPUs, with its plan's axes below */
#define LEFT        92.0
#define RIGHT       40.0
#define TOP         96.0
#define UPPER       270.0 /* height of the upper panel, pixels */
#define BETWEEN     26.0
#define LOWER       150.0
#define LINE        15.0 /* height of a line of a label, pixels */

const ms_scaling_point *ms_scaling_first(const ms_scaling *scaling)
{
    for (int i = 0; i < scaling->num_points; i++)
        if (scaling->points[i].best.found)
            return &scaling->points[i];
    return NULL;
}

double ms_scaling_linear(const ms_scaling *scaling, const ms_scaling_point *point)
{
    const ms_scaling_point *first = ms_scaling_first(scaling);
    return first == NULL
               ? (double)NAN
               : first->best.prediction.tokens_per_s_per_gpu * (double)point->gpus;
}

void ms_scaling_interval(const ms_scaling_point *point, double *low, double *high)
{
    const ms_prediction *p = &point->best.prediction;
    bool known = isfinite(p->step_low_s) && isfinite(p->step_high_s);
    *low = known ? p->tokens_per_s * p->step_s / p->step_high_s : p->tokens_per_s;
    *high = known ? p->tokens_per_s * p->step_s / p->step_low_s : p->tokens_per_s;
}

/* ---- words ---- */

/* Whether each GPU has the same share of the batch at all sizes. */
static bool is_weak(const ms_scaling *scaling)
{
    const ms_scaling_point *first = &scaling->points[0];
    for (int i = 1; i < scaling->num_points; i++) {
        const ms_scaling_point *p = &scaling->points[i];
        if (p->global_batch != 0 &&
            p->global_batch * first->gpus != first->global_batch * p->gpus)
            return false;
    }
    return true;
}

const char *ms_scaling_batch_text(const ms_scaling *scaling)
{
    double tokens = (double)scaling->sequence_length / 0x1p20;
    double low = tokens * (double)scaling->points[0].global_batch, high = low;
    for (int i = 1; i < scaling->num_points; i++) {
        if (scaling->points[i].global_batch == 0)
            continue; /* not searched */
        low = ms_min(low, tokens * (double)scaling->points[i].global_batch);
        high = ms_max(high, tokens * (double)scaling->points[i].global_batch);
    }
    if (low == high)
        return ms_arena_printf(scaling->arena, "%s%.4g Mi tokens per step",
                               scaling->num_points > 1 ? "strong scaling, " : "", low);
    return ms_arena_printf(
        scaling->arena, "%s, %.4g to %.4g Mi tokens per step",
        is_weak(scaling) ? "weak scaling" : "neither strong nor weak scaling", low, high);
}

/* The point with the most GPUs that has a plan; NULL if none has. */
static const ms_scaling_point *last_of(const ms_scaling *scaling)
{
    for (int i = scaling->num_points - 1; i >= 0; i--)
        if (scaling->points[i].best.found)
            return &scaling->points[i];
    return NULL;
}

/* "64 to 4096", "64" for one number. */
static const char *sizes_text(const ms_scaling *scaling)
{
    long least = scaling->points[0].gpus,
         most = scaling->points[scaling->num_points - 1].gpus;
    return least == most ? ms_arena_printf(scaling->arena, "%ld", least)
                         : ms_arena_printf(scaling->arena, "%ld to %ld", least, most);
}

static const char *title(const ms_scaling *scaling)
{
    const ms_scaling_point *first = ms_scaling_first(scaling), *last = last_of(scaling);
    if (last == first) {
        return ms_arena_printf(scaling->arena, "%s on %s × %s", scaling->model,
                               sizes_text(scaling), scaling->device);
    }
    double linear = ms_scaling_linear(scaling, last);
    return ms_arena_printf(scaling->arena, "%s on %ld × %s: %.0f %% of linear from %ld",
                           scaling->model, last->gpus, scaling->device,
                           100.0 * last->best.prediction.tokens_per_s / linear,
                           first->gpus);
}

static const char *subtitle(const ms_scaling *scaling)
{
    return ms_arena_printf(scaling->arena,
                           "the fastest plan at each size · sequences of %ld · %s%s%s",
                           scaling->sequence_length, ms_scaling_batch_text(scaling),
                           scaling->limits[0] == '\0' ? "" : " · ", scaling->limits);
}

static int num_axes(const ms_plan *plan)
{
    int num = (plan->ep > 1) + (plan->etp > 1);
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        num += plan->size[axis] > 1;
    return num > 0 ? num : 1;
}

/* The axes of a point's plan, or why it has none, one per line. */
static const char *label_text(const ms_scaling *scaling, const ms_scaling_point *point)
{
    if (!point->best.found) {
        size_t first = strcspn(point->best.reason, " ");
        return ms_arena_printf(scaling->arena, "%.*s\n%s", (int)first, point->best.reason,
                               point->best.reason + first + 1);
    }
    return ms_caption_wrap(scaling->arena,
                           ms_caption_axes(scaling->arena, &point->best.plan), 1);
}

static int most_label_lines(const ms_scaling *scaling)
{
    int most = 1;
    for (int i = 0; i < scaling->num_points; i++) {
        int lines =
            scaling->points[i].best.found ? num_axes(&scaling->points[i].best.plan) : 2;
        most = lines > most ? lines : most;
    }
    return most;
}

/* ---- files ---- */

static void write_interval(FILE *out, const ms_scaling_point *point)
{
    double low, high;
    ms_scaling_interval(point, &low, &high);
    if (point->best.found)
        ms_print(out, "\t%.9g\t%.9g\n", low, high);
    else
        fputs("\tnan\tnan\n", out);
}

void ms_scaling_write_data(FILE *out, const ms_scaling *scaling)
{
    fputs("# GPUs\ttokens/s\tlinear\tMFU (%)\tplan\tfound\tlow\thigh\n", out);
    for (int i = 0; i < scaling->num_points; i++) {
        const ms_scaling_point *point = &scaling->points[i];
        ms_print(out, "%ld\t", point->gpus);
        if (point->best.found)
            ms_print(out, "%.9g", point->best.prediction.tokens_per_s);
        else
            fputs("nan", out);
        ms_print(out, "\t%.9g\t", ms_scaling_linear(scaling, point));
        if (point->best.found)
            ms_print(out, "%.9g", 100.0 * point->best.prediction.mfu_frac);
        else
            fputs("nan", out);
        fputc('\t', out);
        ms_data_text(out, label_text(scaling, point));
        ms_print(out, "\t%d", point->best.found);
        write_interval(out, point);
    }
}

typedef struct extent {
    double low, high; /* range of tokens/s over all points */
    double mfu_percent;
    int num_none; /* how many numbers of GPUs have no plan */
} extent;

static extent extent_of(const ms_scaling *scaling)
{
    extent e = {.low = INFINITY};
    for (int i = 0; i < scaling->num_points; i++) {
        const ms_scaling_point *point = &scaling->points[i];
        e.high = ms_max(e.high, ms_scaling_linear(scaling, point));
        if (!point->best.found) {
            e.num_none++;
            continue;
        }
        double low, high;
        ms_scaling_interval(point, &low, &high);
        e.low = ms_min(e.low, low);
        e.high = ms_max(e.high, high);
        e.mfu_percent = ms_max(e.mfu_percent, 100.0 * point->best.prediction.mfu_frac);
    }
    return e;
}

ms_status ms_scaling_write_script(ms_ctx *cx, FILE *out, const ms_scaling *scaling,
                                  const char *name, ms_picture_format format)
{
    int num = scaling->num_points;
    double bottom = 50.0 + LINE * most_label_lines(scaling);
    extent e = extent_of(scaling);
    ms_script script = {.kind = "scaling",
                        .name = name,
                        .format = format,
                        .width = ms_max(LEAST_WIDTH, LEFT + RIGHT + SIZE_WIDTH * num),
                        .height = TOP + UPPER + BETWEEN + LOWER + bottom,
                        .margins = {LEFT, RIGHT, TOP, bottom},
                        .title = title(scaling),
                        .subtitle = subtitle(scaling)};
    ms_script_begin(out, &script);
    ms_script_number(out, "upper", UPPER);
    ms_script_number(out, "between", BETWEEN);
    ms_script_number(out, "lower", LOWER);
    ms_script_number(out, "num_sizes", num);
    ms_script_number(out, "num_none", e.num_none);
    ms_script_number(out, "least_gpus", (double)scaling->points[0].gpus);
    ms_script_number(out, "most_gpus", (double)scaling->points[num - 1].gpus);
    ms_script_number(out, "least_tokens", e.low);
    ms_script_number(out, "most_tokens", e.high);
    ms_script_number(out, "most_mfu", e.mfu_percent);
    return ms_script_end(cx, out, &script);
}

static void write_point(ms_jout *out, const ms_scaling *scaling,
                        const ms_scaling_point *point)
{
    const ms_prediction *p = &point->best.prediction;
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "gpus", (double)point->gpus);
    ms_jout_number_field(out, "global_batch", (double)point->global_batch);
    ms_jout_bool_field(out, "found", point->best.found);
    ms_jout_text_field(out, "reason", point->best.reason);
    ms_jout_bool_field(out, "optimal", point->best.optimal);
    ms_jout_number_field(out, "linear_tokens_per_s", ms_scaling_linear(scaling, point));
    if (point->best.found) {
        ms_jout_number_field(out, "tokens_per_s", p->tokens_per_s);
        ms_jout_number_field(out, "tokens_per_s_per_gpu", p->tokens_per_s_per_gpu);
        ms_jout_number_field(out, "mfu_frac", p->mfu_frac);
        ms_jout_number_field(out, "step_s", p->step_s);
        ms_jout_number_field(out, "peak_bytes", p->peak_bytes);
        ms_jout_key(out, "plan");
        ms_plan_write_json(out, &point->best.plan);
    }
    ms_jout_end_object(out);
}

void ms_scaling_write_json(ms_jout *out, const ms_scaling *scaling)
{
    ms_jout_text_field(out, "model", scaling->model);
    ms_jout_text_field(out, "device", scaling->device);
    ms_jout_number_field(out, "sequence_length", (double)scaling->sequence_length);
    ms_jout_begin_array_field(out, "sizes");
    for (int i = 0; i < scaling->num_points; i++)
        write_point(out, scaling, &scaling->points[i]);
    ms_jout_end_array(out);
}

void ms_scaling_print(FILE *out, const ms_scaling *scaling)
{
    ms_print(out, "scaling   %s\n          %s\n\n", title(scaling), subtitle(scaling));
    ms_table *table =
        MS_TABLE(scaling->arena, "rrrrrrrL", "GPUs", "tokens/s", "per GPU", "linear (%)",
                 "MFU (%)", "step (s)", "peak (GiB)", "mesh of the fastest plan");
    for (int i = 0; i < scaling->num_points; i++) {
        const ms_scaling_point *point = &scaling->points[i];
        const ms_prediction *p = &point->best.prediction;
        ms_table_cell(table, "%ld", point->gpus);
        if (!point->best.found) {
            for (int k = 0; k < 6; k++)
                ms_table_cell(table, "-");
            ms_table_cell(table, "none: %s", point->best.reason);
            continue;
        }
        ms_table_cell(table, "%.0f", p->tokens_per_s);
        ms_table_cell(table, "%.0f", p->tokens_per_s_per_gpu);
        ms_table_cell(table, "%.1f",
                      100.0 * p->tokens_per_s / ms_scaling_linear(scaling, point));
        ms_table_cell(table, "%.1f", 100.0 * p->mfu_frac);
        ms_table_cell(table, "%.*f", ms_decimals(p->step_s), p->step_s);
        ms_table_cell(table, "%.1f", ms_gib(p->peak_bytes));
        ms_table_cell(table, "%s", ms_caption_axes(scaling->arena, &point->best.plan));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}
