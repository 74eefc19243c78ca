#include "plots/heatmap_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"
#include "sim/planning/campaign_text.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

#define LEAST_WIDTH 760.0 /* least width of all cells together, pixels */
#define CELL_WIDTH  84.0
#define MOST_CELL   190.0 /* largest width of a cell */
#define CELL_HEIGHT 44.0
#define LETTER      7.4 /* width of a letter of an axis label, pixels */
#define RIGHT       28.0
#define TOP         96.0
#define BOTTOM      58.0

const char *const ms_heatmap_value_names[] = {"time", "mfu", "memory", "tokens", NULL};

/* ---- values ---- */

static int num_cells(const ms_heatmap *plot)
{
    return plot->x.num * plot->y.num;
}

/* The value of a cell with a plan. */
static double value_of(const ms_heatmap *plot, const ms_best_plan *cell)
{
    const double values[MS_NUM_HEATMAP_VALUES] = {
        [MS_HEATMAP_TIME] = cell->prediction.step_s,
        [MS_HEATMAP_MFU] = cell->prediction.mfu_frac,
        [MS_HEATMAP_MEMORY] = cell->needed_bytes,
        [MS_HEATMAP_TOKENS] = cell->prediction.tokens_per_s};
    return values[plot->value];
}

static bool more_is_better(const ms_heatmap *plot)
{
    return plot->value == MS_HEATMAP_MFU || plot->value == MS_HEATMAP_TOKENS;
}

/* The cell with the least or the greatest value; -1: none has a plan. */
static int extreme(const ms_heatmap *plot, bool greatest)
{
    int at = -1;
    for (int i = 0; i < num_cells(plot); i++) {
        if (!plot->cells[i].found)
            continue;
        double value = value_of(plot, &plot->cells[i]);
        double before = at < 0 ? (double)NAN : value_of(plot, &plot->cells[at]);
        if (at < 0 || (greatest ? value > before : value < before))
            at = i;
    }
    return at;
}

int ms_heatmap_best(const ms_heatmap *plot)
{
    return extreme(plot, more_is_better(plot));
}

static int worst(const ms_heatmap *plot)
{
    return extreme(plot, !more_is_better(plot));
}

/* 0 for the best value, 1 for the worst, by their ratios. */
static double shade_of(const ms_heatmap *plot, const ms_best_plan *cell)
{
    double best = value_of(plot, &plot->cells[ms_heatmap_best(plot)]);
    double span = log(value_of(plot, &plot->cells[worst(plot)]) / best);
    return span == 0.0 ? 0.0 : log(value_of(plot, cell) / best) / span;
}

/* Colour between that of the best value and that of the worst. */
static unsigned colour_of(double shade)
{
    static const double best[] = {0x00, 0x50, 0x8C}, worst_rgb[] = {0xE6, 0xF2, 0xFA};
    unsigned rgb = 0;
    for (int i = 0; i < 3; i++)
        rgb = rgb * 256 + (unsigned)lround(best[i] + shade * (worst_rgb[i] - best[i]));
    return rgb;
}

/* ---- words ---- */

static const char *amount(const ms_heatmap *plot, double value)
{
    ms_arena *arena = plot->arena;
    if (plot->value == MS_HEATMAP_MFU)
        return ms_arena_printf(arena, "%.1f %%", 100.0 * value);
    if (plot->value == MS_HEATMAP_MEMORY)
        return ms_arena_printf(arena, "%.1f GiB", ms_gib(value));
    if (plot->value == MS_HEATMAP_TOKENS)
        return ms_arena_printf(arena, "%s/s", ms_large_text(arena, value, ""));
    return ms_caption_time(arena, value);
}

static const char *title(const ms_heatmap *plot)
{
    static const char *const best_words[] = {"Fastest", "Highest MFU", "Least memory",
                                             "Most tokens/s"};
    int best = ms_heatmap_best(plot);
    if (best < 0)
        return "No plan fits";
    return ms_arena_printf(plot->arena, "%s with %s %s, %s %s: %s",
                           best_words[plot->value], plot->x.name,
                           plot->x.values[best % plot->x.num], plot->y.name,
                           plot->y.values[best / plot->x.num],
                           amount(plot, value_of(plot, &plot->cells[best])));
}

static const char *subtitle(const ms_heatmap *plot)
{
    ms_arena *arena = plot->arena;
    int best = ms_heatmap_best(plot);
    if (best < 0)
        return plot->job;
    const ms_prediction *p = &plot->cells[best].prediction;
    const char *text = ms_arena_printf(arena, "%s · best: %s", plot->job,
                                       ms_caption_axes(arena, &plot->cells[best].plan));
    if (plot->value != MS_HEATMAP_TIME || isnan(p->step_low_s))
        return text;
    return ms_arena_printf(arena, "%s, 90 %% interval %s to %s", text,
                           ms_caption_time(arena, p->step_low_s),
                           ms_caption_time(arena, p->step_high_s));
}

/* The second line of a cell: how much worse than the best, or why it has no plan. */
static const char *remark(const ms_heatmap *plot, int cell)
{
    const ms_best_plan *c = &plot->cells[cell];
    if (!c->found)
        return c->too_large
                   ? ms_arena_printf(plot->arena, "needs %.0f", ms_gib(c->needed_bytes))
                   : "";
    int best = ms_heatmap_best(plot);
    if (cell == best)
        return "best";
    double change = value_of(plot, c) / value_of(plot, &plot->cells[best]) - 1.0;
    return ms_arena_printf(plot->arena, "%+.*f %%", fabs(change) < 0.1 ? 1 : 0,
                           100.0 * change);
}

/* ---- files ---- */

static void write_cell(FILE *out, const ms_heatmap *plot, int cell)
{
    const ms_best_plan *c = &plot->cells[cell];
    double shade = c->found ? shade_of(plot, c) : 1.0;
    unsigned fill = c->found ? colour_of(shade) : c->too_large ? 0xDDDDDD : 0xFFFFFF;
    unsigned ink = !c->found ? 0x555555 : shade < 0.55 ? 0xFFFFFF : 0x222222;
    ms_print(out, "%d\t%d\t", cell % plot->x.num + 1, cell / plot->x.num + 1);
    if (c->found)
        ms_print(out, "%.9g", value_of(plot, c));
    else
        fputs("nan", out);
    ms_print(out, "\t%u\t%u\t", fill, ink);
    ms_data_text(out, c->found       ? amount(plot, value_of(plot, c))
                      : c->too_large ? "too large"
                                     : "–");
    fputc('\t', out);
    ms_data_text(out, remark(plot, cell));
    fputc('\n', out);
}

void ms_heatmap_write_data(FILE *out, const ms_heatmap *plot)
{
    ms_print(
        out,
        "# column\trow\t%s\tcolour\tcolour of the text\tvalue\tremark (memory needed "
        "in GiB)\n",
        ms_heatmap_value_names[plot->value]);
    for (int i = 0; i < num_cells(plot); i++)
        write_cell(out, plot, i);
}

static int longest(const ms_heatmap_axis *axis)
{
    size_t most = strlen(axis->name);
    for (int i = 0; i < axis->num; i++)
        most = strlen(axis->values[i]) > most ? strlen(axis->values[i]) : most;
    return (int)most;
}

static void write_axis(ms_ctx *cx, FILE *out, const char *letter,
                       const ms_heatmap_axis *axis)
{
    ms_script_text(out, ms_arena_printf(cx->arena, "%s_name", letter), axis->name);
    ms_script_number(out, ms_arena_printf(cx->arena, "num_%s", letter), axis->num);
    for (int i = 0; i < axis->num; i++)
        ms_script_text(out, ms_arena_printf(cx->arena, "%s_%d", letter, i + 1),
                       axis->values[i]);
}

static int num_missing(const ms_heatmap *plot, bool too_large)
{
    int num = 0;
    for (int i = 0; i < num_cells(plot); i++)
        num += !plot->cells[i].found && plot->cells[i].too_large == too_large;
    return num;
}

static double value_at(const ms_heatmap *plot, int cell)
{
    return cell < 0 ? (double)NAN : value_of(plot, &plot->cells[cell]);
}

ms_status ms_heatmap_write_script(ms_ctx *cx, FILE *out, const ms_heatmap *plot,
                                  const char *name, ms_picture_format format)
{
    int best = ms_heatmap_best(plot);
    double cell_width = ms_max(CELL_WIDTH, LETTER * longest(&plot->x) + 14.0);
    double left = 40.0 + LETTER * longest(&plot->y);
    double all_width =
        ms_max(LEAST_WIDTH, ms_script_title_width(title(plot), subtitle(plot)));
    cell_width = ms_max(cell_width, ms_min(MOST_CELL, all_width / plot->x.num));
    all_width = ms_max(all_width, cell_width * plot->x.num);
    double right = RIGHT + all_width - cell_width * plot->x.num;
    ms_script script = {.kind = "heatmap",
                        .name = name,
                        .format = format,
                        .width = left + all_width + RIGHT,
                        .height = TOP + CELL_HEIGHT * plot->y.num + BOTTOM,
                        .margins = {left, right, TOP, BOTTOM},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    write_axis(cx, out, "x", &plot->x);
    write_axis(cx, out, "y", &plot->y);
    ms_script_number(out, "cell_width", cell_width);
    ms_script_number(out, "best_x", best % plot->x.num + 1);
    ms_script_number(out, "best_y", best < 0 ? 0 : best / plot->x.num + 1);
    ms_script_number(out, "num_large", num_missing(plot, true));
    ms_script_number(out, "num_none", num_missing(plot, false));
    ms_script_text(out, "best_text", best < 0 ? "" : amount(plot, value_at(plot, best)));
    ms_script_text(out, "worst_text",
                   best < 0 ? "" : amount(plot, value_at(plot, worst(plot))));
    ms_script_number(out, "best_color", colour_of(0.0));
    ms_script_number(out, "middle_color", colour_of(0.5));
    ms_script_number(out, "worst_color", colour_of(1.0));
    return ms_script_end(cx, out, &script);
}

static void write_json_cell(ms_jout *out, const ms_heatmap *plot, int cell)
{
    const ms_best_plan *c = &plot->cells[cell];
    const ms_prediction *p = &c->prediction;
    double none = (double)NAN;
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "x", plot->x.values[cell % plot->x.num]);
    ms_jout_text_field(out, "y", plot->y.values[cell / plot->x.num]);
    ms_jout_bool_field(out, "found", c->found);
    ms_jout_text_field(out, "reason", c->reason);
    ms_jout_bool_field(out, "optimal", c->optimal);
    ms_jout_number_field(out, "step_s", c->found ? p->step_s : none);
    ms_jout_number_field(out, "step_s_low", c->found ? p->step_low_s : none);
    ms_jout_number_field(out, "step_s_high", c->found ? p->step_high_s : none);
    ms_jout_number_field(out, "tokens_per_s", c->found ? p->tokens_per_s : none);
    ms_jout_number_field(out, "mfu_frac", c->found ? p->mfu_frac : none);
    ms_jout_number_field(out, "needed_bytes",
                         c->found || c->too_large ? c->needed_bytes : none);
    ms_jout_key(out, "plan");
    if (c->found)
        ms_plan_write_json(out, &c->plan);
    else
        ms_jout_null(out);
    ms_jout_end_object(out);
}

void ms_heatmap_write_json(ms_jout *out, const ms_heatmap *plot)
{
    int best = ms_heatmap_best(plot);
    ms_jout_text_field(out, "x", plot->x.name);
    ms_jout_text_field(out, "y", plot->y.name);
    ms_jout_text_field(out, "value", ms_heatmap_value_names[plot->value]);
    ms_jout_number_field(out, "best", best < 0 ? (double)NAN : best);
    ms_jout_begin_array_field(out, "cells");
    for (int i = 0; i < num_cells(plot); i++)
        write_json_cell(out, plot, i);
    ms_jout_end_array(out);
}

void ms_heatmap_print(FILE *out, const ms_heatmap *plot)
{
    ms_print(out, "heatmap   %s\n          %s\n\n", title(plot), subtitle(plot));
    ms_table *table =
        MS_TABLE(plot->arena, "rrrrrL", plot->x.name, plot->y.name, "step (s)", "MFU (%)",
                 "needs (GiB)", "mesh of the fastest plan");
    for (int i = 0; i < num_cells(plot); i++) {
        const ms_best_plan *c = &plot->cells[i];
        double none = (double)NAN;
        ms_table_cell(table, "%s", plot->x.values[i % plot->x.num]);
        ms_table_cell(table, "%s", plot->y.values[i / plot->x.num]);
        ms_table_cells(table, "%.3f\t%.1f\t%.1f", c->found ? c->prediction.step_s : none,
                       c->found ? 100.0 * c->prediction.mfu_frac : none,
                       c->found || c->too_large ? ms_gib(c->needed_bytes) : none);
        ms_table_cell(table, "%s%s", c->found ? "" : "none: ",
                      c->found ? ms_caption_axes(plot->arena, &c->plan) : c->reason);
    }
    ms_table_print(table, out);
    fputc('\n', out);
}
