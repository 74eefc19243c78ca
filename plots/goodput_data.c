#include "plots/goodput_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"

#include <math.h>

#define WIDTH  1180.0
#define HEIGHT 520.0
#define LEFT   84.0
#define RIGHT  40.0
#define TOP    104.0
#define BOTTOM 62.0

#define NUM_POINTS 61
#define SPAN       30.0 /* largest interval drawn / best one, and best / smallest */

/* Unit of durations from seconds to days. */
static ms_time_unit long_unit(double time_s)
{
    static const ms_time_unit units[] = {
        {"days", 1.0 / 86400.0}, {"h", 1.0 / 3600.0}, {"min", 1.0 / 60.0}};
    for (int i = 0; i < 3; i++)
        if (time_s * units[i].per_s >= 2.0)
            return units[i];
    return ms_time_unit_of(time_s);
}

static const char *duration(ms_arena *arena, double time_s)
{
    ms_time_unit unit = long_unit(time_s);
    return ms_arena_printf(arena, "%.4g %s", time_s * unit.per_s, unit.name);
}

/* ---- intervals ---- */

typedef struct marked {
    const char *name, *key; /* in the legend; in JSON */
    double interval_s;
} marked;

enum {
    NUM_MARKED = 4
};

static void mark(const ms_goodput_plot *plot, marked out[NUM_MARKED])
{
    const ms_interruptions *job = &plot->job;
    out[0] = (marked){"chosen", "chosen", plot->interval_steps * plot->step_s};
    out[1] = (marked){"best", "best", ms_best_interval_s(job)};
    out[2] = (marked){"Young", "young", ms_young_interval_s(job)};
    out[3] = (marked){"Daly", "daly", ms_daly_interval_s(job)};
}

typedef struct extent {
    double low_s, high_s;
} extent;

static extent extent_of(const ms_goodput_plot *plot)
{
    marked marks[NUM_MARKED];
    mark(plot, marks);
    extent e = {INFINITY, 0.0};
    for (int i = 0; i < NUM_MARKED; i++) {
        e.low_s = ms_min(e.low_s, marks[i].interval_s);
        e.high_s = ms_max(e.high_s, marks[i].interval_s);
    }
    return (extent){e.low_s / SPAN, e.high_s * SPAN};
}

static double interval_at(const ms_goodput_plot *plot, int point)
{
    extent e = extent_of(plot);
    return e.low_s * pow(e.high_s / e.low_s, point / (NUM_POINTS - 1.0));
}

/* Goodput with `factor` times the mean time between interruptions. */
static double goodput(const ms_goodput_plot *plot, double factor, double interval_s)
{
    ms_interruptions job = plot->job;
    job.mean_s *= factor;
    return ms_goodput_frac(&job, interval_s);
}

static double chosen_frac(const ms_goodput_plot *plot)
{
    return goodput(plot, 1.0, plot->interval_steps * plot->step_s);
}

/* ---- words ---- */

static const char *title(const ms_goodput_plot *plot)
{
    ms_arena *arena = plot->arena;
    return ms_arena_printf(arena, "A checkpoint every %s: %.1f %% goodput",
                           duration(arena, plot->interval_steps * plot->step_s),
                           100.0 * chosen_frac(plot));
}

static const char *subtitle(const ms_goodput_plot *plot)
{
    ms_arena *arena = plot->arena;
    const ms_interruptions *job = &plot->job;
    return ms_arena_printf(
        arena,
        "%s · %.0f step%s of %s · interrupted every %s (a GPU every %s) · "
        "checkpoint %s · restart %s",
        ms_caption_job(arena, plot->plan, plot->workload), plot->interval_steps,
        plot->interval_steps == 1.0 ? "" : "s", ms_caption_time(arena, plot->step_s),
        duration(arena, job->mean_s), duration(arena, plot->gpu_mean_s),
        duration(arena, job->checkpoint_s), duration(arena, job->restart_s));
}

/* ---- files ---- */

static ms_time_unit axis_unit(const ms_goodput_plot *plot)
{
    return long_unit(plot->interval_steps * plot->step_s);
}

void ms_goodput_plot_write_data(FILE *out, const ms_goodput_plot *plot)
{
    ms_time_unit unit = axis_unit(plot);
    ms_print(out, "# interval (%s)\tgoodput (%%)\thalf the MTBF\ttwice the MTBF\n",
             unit.name);
    for (int i = 0; i < NUM_POINTS; i++) {
        double interval_s = interval_at(plot, i);
        ms_print(out, "%.9g\t%.9g\t%.9g\t%.9g\n", interval_s * unit.per_s,
                 100.0 * goodput(plot, 1.0, interval_s),
                 100.0 * goodput(plot, 0.5, interval_s),
                 100.0 * goodput(plot, 2.0, interval_s));
    }
}

ms_status ms_goodput_plot_write_script(ms_ctx *cx, FILE *out, const ms_goodput_plot *plot,
                                       const char *name, ms_picture_format format)
{
    ms_arena *arena = plot->arena;
    ms_time_unit unit = axis_unit(plot);
    extent e = extent_of(plot);
    marked marks[NUM_MARKED];
    mark(plot, marks);
    ms_script script = {.kind = "goodput",
                        .name = name,
                        .format = format,
                        .width = WIDTH,
                        .height = HEIGHT,
                        .margins = {LEFT, RIGHT, TOP, BOTTOM},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_text(out, "unit", unit.name);
    ms_script_number(out, "low", e.low_s * unit.per_s);
    ms_script_number(out, "high", e.high_s * unit.per_s);
    ms_script_number(
        out, "least",
        100.0 * ms_min(goodput(plot, 0.5, e.low_s), goodput(plot, 0.5, e.high_s)));
    ms_script_number(out, "most",
                     100.0 * goodput(plot, 2.0, plot->interval_steps * plot->step_s));
    ms_script_number(out, "num_marks", NUM_MARKED);
    for (int i = 0; i < NUM_MARKED; i++) {
        ms_script_number(out, ms_arena_printf(arena, "at_%d", i + 1),
                         marks[i].interval_s * unit.per_s);
        ms_script_number(out, ms_arena_printf(arena, "goodput_%d", i + 1),
                         100.0 * goodput(plot, 1.0, marks[i].interval_s));
        ms_script_text(out, ms_arena_printf(arena, "mark_%d", i + 1),
                       ms_arena_printf(arena, "%s %s", marks[i].name,
                                       duration(arena, marks[i].interval_s)));
    }
    return ms_script_end(cx, out, &script);
}

static void write_mark(ms_jout *out, const ms_goodput_plot *plot, const marked *m)
{
    ms_jout_begin_object_field(out, m->key);
    ms_jout_number_field(out, "interval_s", m->interval_s);
    ms_jout_number_field(out, "goodput_frac", goodput(plot, 1.0, m->interval_s));
    ms_jout_end_object(out);
}

void ms_goodput_plot_write_json(ms_jout *out, const ms_goodput_plot *plot)
{
    marked marks[NUM_MARKED];
    mark(plot, marks);
    ms_jout_number_field(out, "gpus", (double)plot->plan->gpus);
    ms_jout_number_field(out, "step_s", plot->step_s);
    ms_jout_number_field(out, "interval_steps", plot->interval_steps);
    ms_jout_number_field(out, "gpu_mtbf_s", plot->gpu_mean_s);
    ms_jout_number_field(out, "mtbf_s", plot->job.mean_s);
    ms_jout_number_field(out, "checkpoint_s", plot->job.checkpoint_s);
    ms_jout_number_field(out, "restart_s", plot->job.restart_s);
    for (int i = 0; i < NUM_MARKED; i++)
        write_mark(out, plot, &marks[i]);
    ms_jout_begin_array_field(out, "points");
    for (int i = 0; i < NUM_POINTS; i++) {
        double interval_s = interval_at(plot, i);
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "interval_s", interval_s);
        ms_jout_number_field(out, "goodput_frac", goodput(plot, 1.0, interval_s));
        ms_jout_number_field(out, "half_mtbf_frac", goodput(plot, 0.5, interval_s));
        ms_jout_number_field(out, "twice_mtbf_frac", goodput(plot, 2.0, interval_s));
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_goodput_plot_print(FILE *out, const ms_goodput_plot *plot)
{
    marked marks[NUM_MARKED];
    mark(plot, marks);
    ms_print(out, "goodput   %s\n          %s\n\n", title(plot), subtitle(plot));
    ms_table *table = MS_TABLE(plot->arena, "lrrrr", "interval", "length", "goodput (%)",
                               "half the MTBF (%)", "twice the MTBF (%)");
    for (int i = 0; i < NUM_MARKED; i++) {
        ms_table_cells(table, "%s\t%s\t%.2f\t%.2f\t%.2f", marks[i].name,
                       duration(plot->arena, marks[i].interval_s),
                       100.0 * goodput(plot, 1.0, marks[i].interval_s),
                       100.0 * goodput(plot, 0.5, marks[i].interval_s),
                       100.0 * goodput(plot, 2.0, marks[i].interval_s));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}
