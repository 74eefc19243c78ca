#include "plots/sensitivity_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"
#include "sim/planning/campaign_text.h"

#include <math.h>
#include <string.h>

#define PLOT_WIDTH   620.0
#define RIGHT        60.0
#define TOP          104.0
#define BOTTOM       62.0
#define ROW_HEIGHT   27.0
#define LEAST_HEIGHT 110.0
#define LETTER_WIDTH 6.6  /* pixels of a letter of a row's label */
#define PADDING      1.18 /* ends of the axis / largest change, with room for words */
#define LEAST_SPAN   1.0  /* percent to both sides */

/* ---- rows ---- */

int ms_tornado_num_rows(const ms_tornado *plot)
{
    int num = plot->study->num_numbers;
    return num < MS_MAX_TORNADO_ROWS ? num : MS_MAX_TORNADO_ROWS;
}

/* Change of the measure in percent; NaN: one of the plans is not found. */
static double change_percent(const ms_what_if *study, const ms_best_plan *from,
                             const ms_best_plan *to)
{
    double before = ms_what_if_value_of(study->measure, from),
           after = ms_what_if_value_of(study->measure, to);
    return 100.0 * (after / before - 1.0);
}

static double kept_percent(const ms_tornado *plot, int row, int side)
{
    const ms_what_if *study = plot->study;
    return change_percent(study, &study->kept, &study->numbers[row].sides[side].kept);
}

/* Change with the best plan, against the kept one; NaN: not searched, or none fits. */
static double best_percent(const ms_tornado *plot, int row, int side)
{
    const ms_what_if *study = plot->study;
    const ms_what_if_outcome *o = &study->numbers[row].sides[side];
    return o->searched ? change_percent(study, &study->kept, &o->best) : (double)NAN;
}

/* Largest change to either side. */
static double span_of(const ms_tornado *plot)
{
    double span = LEAST_SPAN;
    for (int row = 0; row < ms_tornado_num_rows(plot); row++) {
        for (int side = 0; side < MS_WHAT_IF_SIDES; side++) {
            double kept = fabs(kept_percent(plot, row, side)),
                   best = fabs(best_percent(plot, row, side));
            span = ms_max(span, isnan(kept) ? 0.0 : kept);
            span = ms_max(span, isnan(best) ? 0.0 : best);
        }
    }
    return span;
}

/* ---- words ---- */

/* "device.hbm 3.35 TB/s" */
static const char *label(const ms_tornado *plot, int row)
{
    const ms_what_if_number *n = &plot->study->numbers[row];
    return ms_arena_printf(plot->arena, "%s  %s", n->key,
                           ms_quantity_text(plot->arena, n->value, n->unit));
}

static const char *measure_text(const ms_tornado *plot)
{
    static const char *const words[MS_WHAT_IF_MEASURES] = {"step", "training", "cost"};
    return words[plot->study->measure];
}

/* "42.1 s", "21.0 days", "646.6k" of the kept plan. */
static const char *now_text(const ms_tornado *plot)
{
    const ms_what_if *study = plot->study;
    double value = ms_what_if_value_of(study->measure, &study->kept);
    return study->measure == MS_WHAT_IF_STEP   ? ms_caption_time(plot->arena, value)
           : study->measure == MS_WHAT_IF_TIME ? ms_long_time_text(plot->arena, value)
                                               : ms_large_text(plot->arena, value, "");
}

/* "device.tdp_w: 20 % more, -12.1 %" */
static const char *row_text(const ms_tornado *plot, int row)
{
    const ms_what_if_number *n = &plot->study->numbers[row];
    double frac = n->changed[MS_WHAT_IF_HIGH] / n->value - 1.0,
           change = kept_percent(plot, row, MS_WHAT_IF_HIGH);
    return isnan(change) || frac <= 0.0
               ? n->key
               : ms_arena_printf(plot->arena, "%s: %.3g %% more, %+.1f %%", n->key,
                                 100.0 * frac, change);
}

/* Names the first row; a price, which costs are proportional to, with the next one. */
static const char *title(const ms_tornado *plot)
{
    ms_arena *arena = plot->arena;
    int num = ms_tornado_num_rows(plot);
    const char *begin = ms_arena_printf(arena, "The %s of %s depends", measure_text(plot),
                                        now_text(plot));
    if (num == 0)
        return ms_arena_printf(arena, "%s on no number", begin);
    bool by_price = strcmp(plot->study->numbers[0].key, "price") == 0;
    return by_price && num > 1
               ? ms_arena_printf(arena, "%s most on the price, then on %s", begin,
                                 row_text(plot, 1))
               : ms_arena_printf(arena, "%s most on %s", begin, row_text(plot, 0));
}

static const char *subtitle(const ms_tornado *plot)
{
    const ms_what_if *study = plot->study;
    const ms_plan *plan = &study->kept.plan;
    ms_arena *arena = plot->arena;
    const char *text = ms_arena_printf(
        arena, "%s on %ld GPUs of %s · %s · each number alone %.3g %% less and more",
        ms_caption_name(arena, plan->model), plan->gpus,
        ms_caption_name(arena, plan->cluster), ms_caption_axes(arena, plan),
        100.0 * study->change_frac);
    int more = study->num_numbers - ms_tornado_num_rows(plot);
    return more == 0
               ? text
               : ms_arena_printf(arena, "%s · %d more have less effect", text, more);
}

/* ---- files ---- */

static void write_percent(FILE *out, double value)
{
    if (isnan(value))
        fputs("\tnan", out);
    else
        ms_print(out, "\t%.6g", value);
}

void ms_tornado_write_data(FILE *out, const ms_tornado *plot)
{
    fputs(
        "# row\tless: kept (%)\tmore: kept (%)\tless: best (%)\tmore: best (%)\tnumber\n",
        out);
    for (int row = 0; row < ms_tornado_num_rows(plot); row++) {
        ms_print(out, "%d", row);
        for (int side = 0; side < MS_WHAT_IF_SIDES; side++)
            write_percent(out, kept_percent(plot, row, side));
        for (int side = 0; side < MS_WHAT_IF_SIDES; side++)
            write_percent(out, best_percent(plot, row, side));
        fputc('\t', out);
        ms_data_text(out, label(plot, row));
        fputc('\n', out);
    }
}

/* Whether any row has a best plan, or a side on which the kept plan is none. */
static void look_for(const ms_tornado *plot, bool *has_best, bool *has_none)
{
    *has_best = *has_none = false;
    for (int row = 0; row < ms_tornado_num_rows(plot); row++) {
        for (int side = 0; side < MS_WHAT_IF_SIDES; side++) {
            *has_best |= !isnan(best_percent(plot, row, side));
            *has_none |= isnan(kept_percent(plot, row, side));
        }
    }
}

static double left_of(const ms_tornado *plot)
{
    size_t most = 12;
    for (int row = 0; row < ms_tornado_num_rows(plot); row++) {
        size_t length = strlen(label(plot, row));
        most = length > most ? length : most;
    }
    return LETTER_WIDTH * (double)most + 24.0;
}

ms_status ms_tornado_write_script(ms_ctx *cx, FILE *out, const ms_tornado *plot,
                                  const char *name, ms_picture_format format)
{
    double left = left_of(plot), rows = ROW_HEIGHT * ms_tornado_num_rows(plot);
    bool has_best, has_none;
    look_for(plot, &has_best, &has_none);
    ms_script script = {
        .kind = "sensitivity",
        .name = name,
        .format = format,
        .width = ms_max(left + PLOT_WIDTH + RIGHT,
                        48.0 + ms_script_title_width(title(plot), subtitle(plot))),
        .height = TOP + ms_max(rows, LEAST_HEIGHT) + BOTTOM,
        .margins = {left, RIGHT, TOP, BOTTOM},
        .title = title(plot),
        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "title_left", 24.0);
    ms_script_number(out, "num_rows", ms_tornado_num_rows(plot));
    ms_script_number(out, "span", PADDING * span_of(plot));
    ms_script_number(out, "change", 100.0 * plot->study->change_frac);
    ms_script_number(out, "has_best", has_best);
    ms_script_number(out, "has_none", has_none);
    ms_script_text(
        out, "x_title",
        ms_arena_printf(cx->arena, "change of the %s (%%)", measure_text(plot)));
    return ms_script_end(cx, out, &script);
}

static void write_pair(ms_jout *out, const char *key, double less, double more)
{
    ms_jout_begin_object_field(out, key);
    ms_jout_number_field(out, "less_frac", less / 100.0);
    ms_jout_number_field(out, "more_frac", more / 100.0);
    ms_jout_end_object(out);
}

void ms_tornado_write_json(ms_jout *out, const ms_tornado *plot)
{
    const ms_what_if *study = plot->study;
    ms_jout_text_field(out, "measure", ms_what_if_measure_names[study->measure]);
    ms_jout_number_field(out, "change_frac", study->change_frac);
    ms_jout_begin_array_field(out, "rows");
    for (int row = 0; row < ms_tornado_num_rows(plot); row++) {
        const ms_what_if_number *n = &study->numbers[row];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "file", n->file);
        ms_jout_text_field(out, "key", n->key);
        ms_jout_number_field(out, "value", n->value);
        write_pair(out, "kept", kept_percent(plot, row, 0), kept_percent(plot, row, 1));
        write_pair(out, "best", best_percent(plot, row, 0), best_percent(plot, row, 1));
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, &study->kept.plan);
}

void ms_tornado_print(FILE *out, const ms_tornado *plot)
{
    const char *titles[] = {"number",     "kept, less", "kept, more",
                            "best, less", "best, more", NULL};
    ms_print(out, "sensitivity  %s\n             %s\n\n", title(plot), subtitle(plot));
    ms_table *table = ms_table_columns(ms_table_new(plot->arena), "lr1r1r1r1", titles);
    for (int row = 0; row < ms_tornado_num_rows(plot); row++) {
        ms_table_cell(table, "%s", label(plot, row));
        ms_table_cells(table, "%.1f\t%.1f\t%.1f\t%.1f", kept_percent(plot, row, 0),
                       kept_percent(plot, row, 1), best_percent(plot, row, 0),
                       best_percent(plot, row, 1));
    }
    ms_table_print(table, out);
    ms_print(out, "\nchanges of the %s in %%; -: not searched, or nothing fits\n\n",
             measure_text(plot));
}
