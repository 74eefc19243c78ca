#include "plots/validation_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEFT         78.0
#define RIGHT        30.0
#define TOP          88.0
#define BOTTOM       58.0
#define PANEL        440.0
#define BETWEEN      84.0
#define LEGEND_SPACE 24.0
#define LETTER       6.4 /* mean width of a letter of the legend, pixels */

#define POOLED "pooled"

/* ---- sources ---- */

static int source_index(const ms_validation_plot *plot, const char *name)
{
    for (int i = 0; i < plot->num_sources; i++)
        if (strcmp(plot->sources[i].name, name) == 0)
            return i;
    return -1;
}

static void add_sources(ms_validation_plot *plot, const ms_error_summary *summary)
{
    for (int i = 0; i < summary->num_sources; i++)
        if (source_index(plot, summary->sources[i].source) < 0)
            plot->sources[plot->num_sources++].name = summary->sources[i].source;
}

/* Sorts sources by descending number of points, so that few points are drawn over many;
 * pooled sources last. */
static int by_points(const void *a, const void *b)
{
    const ms_plotted_source *x = a, *y = b;
    bool x_pooled = strcmp(x->name, POOLED) == 0, y_pooled = strcmp(y->name, POOLED) == 0;
    int num_x = x->num_time + x->num_memory, num_y = y->num_time + y->num_memory;
    if (x_pooled != y_pooled)
        return x_pooled ? 1 : -1;
    return num_x != num_y ? num_y - num_x : strcmp(x->name, y->name);
}

static int source_of_run(const ms_validation_plot *plot, int run)
{
    int place = source_index(plot, plot->validation->runs->runs[run].source);
    return place >= 0 ? place : source_index(plot, POOLED);
}

static bool has_time(const ms_validation *v, int run)
{
    return !isnan(v->scores[run].step_error_frac);
}

static bool has_memory(const ms_validation *v, int run)
{
    return !isnan(v->scores[run].peak_error_frac);
}

ms_validation_plot ms_validation_plot_make(ms_arena *arena, const ms_validation *v)
{
    int most = v->time.num_sources + v->memory.num_sources, num_runs = v->runs->num_runs;
    ms_validation_plot plot = {.arena = arena,
                               .validation = v,
                               .sources = MS_NEW_ARRAY(arena, most, ms_plotted_source)};
    add_sources(&plot, &v->time);
    add_sources(&plot, &v->memory);
    for (int i = 0; i < num_runs; i++) {
        if (!has_time(v, i) && !has_memory(v, i))
            continue;
        ms_plotted_source *source = &plot.sources[source_of_run(&plot, i)];
        source->num_time += has_time(v, i);
        source->num_memory += has_memory(v, i);
    }
    if (plot.num_sources > 1)
        qsort(plot.sources, (size_t)plot.num_sources, sizeof *plot.sources, by_points);
    int *source_of = MS_NEW_ARRAY(arena, num_runs, int);
    for (int i = 0; i < num_runs; i++)
        source_of[i] = has_time(v, i) || has_memory(v, i) ? source_of_run(&plot, i) : -1;
    plot.source_of = source_of;
    return plot;
}

/* ---- data ---- */

static void write_points(FILE *out, const ms_validation_plot *plot, bool of_memory)
{
    const ms_validation *v = plot->validation;
    for (int source = 0; source < plot->num_sources; source++) {
        for (int i = 0; i < v->runs->num_runs; i++) {
            const ms_pubrun *run = &v->runs->runs[i];
            if (plot->source_of[i] != source ||
                !(of_memory ? has_memory(v, i) : has_time(v, i)))
                continue;
            if (of_memory)
                ms_print(out, "%.9g\t%.9g", ms_gib(run->measured_peak_bytes),
                         ms_gib(v->scores[i].peak_bytes));
            else
                ms_print(out, "%.9g\t%.9g", run->measured_step_s, v->scores[i].step_s);
            ms_print(out, "\t%d\t", source + 1);
            ms_data_text(out, run->id);
            fputc('\n', out);
        }
    }
}

void ms_validation_plot_write_data(FILE *out, const ms_validation_plot *plot)
{
    fputs("# index 0: step time (s)\n# measured\tpredicted\tsource\trun\n", out);
    write_points(out, plot, false);
    fputs("\n\n# index 1: peak memory (GiB)\n", out);
    write_points(out, plot, true);
}

/* ---- script ---- */

typedef struct extent {
    double low, high;
} extent;

static void widen(extent *e, double measured, double predicted)
{
    e->low = ms_min(e->low, ms_min(measured, predicted));
    e->high = ms_max(e->high, ms_max(measured, predicted));
}

/* The common range of both axes in seconds or GiB, with a margin. */
static extent extent_of(const ms_validation *v, bool of_memory)
{
    const double margin = 1.25;
    extent e = {INFINITY, 0.0};
    for (int i = 0; i < v->runs->num_runs; i++) {
        const ms_pubrun *run = &v->runs->runs[i];
        if (of_memory && has_memory(v, i))
            widen(&e, ms_gib(run->measured_peak_bytes), ms_gib(v->scores[i].peak_bytes));
        if (!of_memory && has_time(v, i))
            widen(&e, run->measured_step_s, v->scores[i].step_s);
    }
    ms_logarithmic_range range = ms_logarithmic_range_of(e.low / margin, e.high * margin);
    return (extent){range.low, range.high};
}

static const char *panel_title(ms_arena *arena, const char *what,
                               const ms_error_summary *summary)
{
    return ms_arena_printf(arena, "%s of %d run%s · median error %.1f %%, by source",
                           what, summary->num_runs, summary->num_runs == 1 ? "" : "s",
                           100.0 * summary->macro_median_ape_frac);
}

static void write_panel(FILE *out, const ms_validation_plot *plot, const char *name,
                        bool of_memory)
{
    ms_arena *arena = plot->arena;
    const ms_validation *v = plot->validation;
    const ms_error_summary *summary = of_memory ? &v->memory : &v->time;
    extent e = extent_of(v, of_memory);
    ms_script_number(out, ms_arena_printf(arena, "num_%s", name), summary->num_runs);
    if (summary->num_runs == 0)
        return;
    ms_script_text(out, ms_arena_printf(arena, "title_%s", name),
                   panel_title(arena, of_memory ? "peak memory" : "step time", summary));
    ms_script_number(out, ms_arena_printf(arena, "low_%s", name), e.low);
    ms_script_number(out, ms_arena_printf(arena, "high_%s", name), e.high);
}

static const char *entry_text(const ms_validation_plot *plot, int source)
{
    const ms_plotted_source *s = &plot->sources[source];
    int num = s->num_time > s->num_memory ? s->num_time : s->num_memory;
    return ms_arena_printf(plot->arena, "%s (%d)", s->name, num);
}

static double legend_width(const ms_validation_plot *plot)
{
    size_t longest = 0;
    for (int i = 0; i < plot->num_sources; i++) {
        size_t length = strlen(entry_text(plot, i));
        longest = length > longest ? length : longest;
    }
    return LEGEND_SPACE + LETTER * (double)longest;
}

/* "Median error of step times 6.8 %, of memory peaks 5.1 %" */
static const char *title(const ms_validation_plot *plot)
{
    const ms_error_summary *time = &plot->validation->time,
                           *memory = &plot->validation->memory;
    const char *text = "Median error of";
    if (time->num_runs > 0)
        text = ms_arena_printf(plot->arena, "%s step times %.1f %%", text,
                               100.0 * time->macro_median_ape_frac);
    if (memory->num_runs > 0)
        text = ms_arena_printf(plot->arena, "%s%s peaks %.1f %%", text,
                               time->num_runs > 0 ? ", of" : "",
                               100.0 * memory->macro_median_ape_frac);
    return text;
}

static const char *subtitle(const ms_validation_plot *plot)
{
    return ms_arena_printf(
        plot->arena, "%d published run%s · shaded: within 10 %% and 25 %%",
        plot->validation->num_priced, plot->validation->num_priced == 1 ? "" : "s");
}

ms_status ms_validation_plot_write_script(ms_ctx *cx, FILE *out,
                                          const ms_validation_plot *plot,
                                          const char *name, ms_picture_format format)
{
    const ms_validation *v = plot->validation;
    int num_panels = (v->time.num_runs > 0) + (v->memory.num_runs > 0);
    double legend = LEFT + num_panels * PANEL + (num_panels - 1) * BETWEEN + LEGEND_SPACE;
    ms_script script = {"validation",
                        name,
                        format,
                        .width = legend + legend_width(plot) + RIGHT,
                        .height = TOP + PANEL + BOTTOM,
                        .margins = {LEFT, RIGHT, TOP, BOTTOM},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "panel", PANEL);
    ms_script_number(out, "between", BETWEEN);
    ms_script_number(out, "legend", legend);
    write_panel(out, plot, "time", false);
    write_panel(out, plot, "memory", true);
    ms_script_number(out, "num_sources", plot->num_sources);
    for (int i = 0; i < plot->num_sources; i++)
        ms_script_text(out, ms_arena_printf(plot->arena, "source_%d", i + 1),
                       entry_text(plot, i));
    return ms_script_end(cx, out, &script);
}

/* ---- results ---- */

void ms_validation_plot_write_json(ms_jout *out, const ms_validation_plot *plot)
{
    const ms_validation *v = plot->validation;
    ms_jout_number_field(out, "step_time_median_ape", v->time.macro_median_ape_frac);
    ms_jout_number_field(out, "peak_memory_median_ape", v->memory.macro_median_ape_frac);
    ms_jout_begin_array_field(out, "runs");
    for (int i = 0; i < v->runs->num_runs; i++) {
        if (plot->source_of[i] < 0)
            continue;
        const ms_pubrun *run = &v->runs->runs[i];
        const double unknown = (double)NAN;
        bool time = has_time(v, i), memory = has_memory(v, i);
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "id", run->id);
        ms_jout_text_field(out, "source", plot->sources[plot->source_of[i]].name);
        ms_jout_number_field(out, "measured_step_s",
                             time ? run->measured_step_s : unknown);
        ms_jout_number_field(out, "predicted_step_s",
                             time ? v->scores[i].step_s : unknown);
        ms_jout_number_field(out, "measured_peak_bytes",
                             memory ? run->measured_peak_bytes : unknown);
        ms_jout_number_field(out, "predicted_peak_bytes",
                             memory ? v->scores[i].peak_bytes : unknown);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_validation_plot_print(FILE *out, const ms_validation_plot *plot)
{
    ms_print(out, "validation  %s\n            %s\n\n", title(plot), subtitle(plot));
    ms_table *table = MS_TABLE(plot->arena, "Lrr", "source", "step times", "peaks");
    for (int i = 0; i < plot->num_sources; i++)
        ms_table_cells(table, "%s\t%d\t%d", plot->sources[i].name,
                       plot->sources[i].num_time, plot->sources[i].num_memory);
    ms_table_print(table, out);
    fputc('\n', out);
}
