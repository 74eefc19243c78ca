/* Data of the memory plot; horizontal places are pixels from the left end of the axes. */
#include "plots/memory_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

#define LEAST_WIDTH 1280.0
#define LEAST_PLAN  140.0 /* least width of a plan's bars, pixels */
#define MOST_PITCH  44.0  /* largest distance between bars, pixels */
#define LEFT        70.0
#define RIGHT       96.0
#define TOP         96.0
#define HEIGHT      380.0 /* height of the axes, pixels */
#define LINE        17.0  /* pixels, height of a line of a plan label */
#define CHARACTER   6.8   /* pixels, mean width of a character of a plan label */

/* ---- where bars stand ---- */

static double width_of(const ms_memory_plot *plot)
{
    return ms_max(LEAST_WIDTH, LEFT + RIGHT + LEAST_PLAN * plot->num_plans);
}

/* Width of a plan's bars, `px` each, and a gap; at least LEAST_PLAN. */
static double plan_px(const ms_priced_plan *plan, double px)
{
    return ms_max((plan->prediction.num_stages + 1.0) * px, LEAST_PLAN);
}

/* The largest bar width with which all plans fit side by side, by bisection. */
static double bar_px(const ms_memory_plot *plot)
{
    double low = 0.0, high = 0.9 * width_of(plot);
    for (int i = 0; i < 60; i++) {
        double px = 0.5 * (low + high), sum = 0.0;
        for (int k = 0; k < plot->num_plans; k++)
            sum += plan_px(&plot->plans[k], px);
        *(sum <= width_of(plot) - LEFT - RIGHT ? &low : &high) = px;
    }
    return low;
}

typedef struct place {
    double from_px, to_px; /* ends of the plan's part of the axes, gaps included */
    double first_px;       /* middle of the first bar */
    double pitch_px;       /* distance from one bar to the next */
} place;

/* The horizontal place of a plan; plans with few ranks get wider bars. */
static place place_of(const ms_memory_plot *plot, int plan)
{
    double px = bar_px(plot);
    place at = {0};
    for (int i = 0; i <= plan; i++) {
        at.from_px = at.to_px;
        at.to_px += plan_px(&plot->plans[i], px);
    }
    int ranks = plot->plans[plan].prediction.num_stages;
    double room_px = at.to_px - at.from_px;
    at.pitch_px = ms_min(room_px / (ranks + 1.0), ms_max(px, MOST_PITCH));
    at.first_px = at.from_px + 0.5 * (room_px - at.pitch_px * (ranks - 1.0));
    return at;
}

/* ---- words ---- */

/* Label below a plan's bars, wrapped to the bars' width. */
static const char *label_text(const ms_memory_plot *plot, const ms_priced_plan *plan)
{
    ms_arena *arena = plot->arena;
    if (plot->num_plans == 1)
        return ""; /* a single plan is named in the subtitle */
    double px = ms_min(plan_px(plan, bar_px(plot)), 260.0);
    return ms_priced_plan_label(arena, plan, (size_t)(px / CHARACTER) - 1);
}

static int most_label_lines(const ms_memory_plot *plot)
{
    int most = 0;
    for (int i = 0; i < plot->num_plans; i++) {
        int lines = ms_caption_lines(label_text(plot, &plot->plans[i]));
        most = lines > most ? lines : most;
    }
    return most;
}

static const ms_priced_plan *worst_plan(const ms_memory_plot *plot)
{
    const ms_priced_plan *worst = plot->plans;
    for (int i = 1; i < plot->num_plans; i++)
        if (plot->plans[i].prediction.peak_bytes > worst->prediction.peak_bytes)
            worst = &plot->plans[i];
    return worst;
}

/* Device memory that is left for what a plan's bars show. */
static double room_bytes(const ms_prediction *p)
{
    return p->capacity_bytes - p->outside_bytes;
}

/* "78.7 GiB + 2.0 GiB of context and communicators of 79.1 GiB: 1.6 GiB too much" */
static const char *most_text(ms_arena *arena, const ms_prediction *p)
{
    double free_bytes = ms_prediction_free_bytes(p, p->peak_bytes);
    return ms_arena_printf(
        arena, "%.1f GiB%s of %.1f GiB%s", ms_gib(p->peak_bytes),
        ms_outside_text(arena, p), ms_gib(p->capacity_bytes),
        free_bytes >= 0.0
            ? ""
            : ms_arena_printf(arena, ": %.1f GiB too much", ms_gib(-free_bytes)));
}

static const char *title(const ms_memory_plot *plot)
{
    return ms_priced_plans_title(
        plot->arena, plot->num_plans == 1 ? "Peak memory per rank" : "Peak memory",
        plot->plans, plot->num_plans);
}

/* ", 31 % risk of running out of memory", or "" if no errors of peaks are known. */
static const char *risk_text(ms_arena *arena, const ms_prediction *p)
{
    return isnan(p->fits_probability)
               ? ""
               : ms_arena_printf(arena, ", %.0f %% risk of running out of memory",
                                 100.0 * (1.0 - p->fits_probability));
}

static const char *subtitle(const ms_memory_plot *plot)
{
    ms_arena *arena = plot->arena;
    const ms_priced_plan *worst = worst_plan(plot);
    const ms_prediction *p = &worst->prediction;
    if (plot->num_plans == 1) {
        return ms_arena_printf(arena, "%s · %s · most on rank %d: %s%s",
                               ms_caption_axes(arena, worst->plan),
                               ms_caption_choices(arena, worst->plan), p->worst_rank,
                               most_text(arena, p), risk_text(arena, p));
    }
    return ms_arena_printf(
        arena,
        "one bar per pipeline rank, the fullest of each plan in bold · "
        "most: %s, %s%s",
        ms_priced_plan_name(arena, worst), most_text(arena, p), risk_text(arena, p));
}

/* ---- files ---- */

static void write_bars(FILE *out, const ms_prediction *p, int plan, place at)
{
    double half_px = ms_min(0.42 * at.pitch_px, 45.0);
    for (int i = 0; i < p->num_stages; i++) {
        const ms_stage_prediction *stage = &p->stages[i];
        ms_print(out, "%.1f\t%.1f\t%d\t%d\t%.9g\t%d", at.first_px + at.pitch_px * i,
                 half_px, plan, stage->rank, ms_gib(stage->peak_bytes),
                 stage->rank == p->worst_rank);
        for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
            ms_print(out, "\t%.9g", ms_gib(stage->memory[part]));
        fputc('\n', out);
    }
}

void ms_memory_plot_write_data(FILE *out, const ms_memory_plot *plot)
{
    fputs("# x and half a width in pixels, memory in GiB\n"
          "# x\thalf\tplan\trank\tpeak\tworst",
          out);
    for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
        ms_print(out, "\t%s", ms_memory_category_names[part]);
    fputc('\n', out);
    for (int i = 0; i < plot->num_plans; i++)
        write_bars(out, &plot->plans[i].prediction, i, place_of(plot, i));
    fputs("\n\n# plans\n# from x\tto x\tcapacity\tlabel\n", out);
    for (int i = 0; i < plot->num_plans; i++) {
        const ms_prediction *p = &plot->plans[i].prediction;
        place at = place_of(plot, i);
        ms_print(out, "%.1f\t%.1f\t%.9g\t", at.from_px, at.to_px, ms_gib(room_bytes(p)));
        ms_data_text(out, label_text(plot, &plot->plans[i]));
        fputc('\n', out);
    }
}

typedef struct extent {
    double highest;  /* bytes: the highest peak or capacity */
    double capacity; /* room_bytes of every plan; 0: they differ */
    double outside;  /* most that lies outside the bars, bytes */
    int parts;       /* bit mask of memory categories that any rank has */
} extent;

/* Bit mask of the memory categories in which a pipeline rank has bytes. */
static int categories_of(const ms_stage_prediction *stage)
{
    int parts = 0;
    for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
        parts |= (stage->memory[part] > 0.0) << part;
    return parts;
}

static extent extent_of(const ms_memory_plot *plot)
{
    extent e = {.capacity = room_bytes(&plot->plans[0].prediction)};
    for (int i = 0; i < plot->num_plans; i++) {
        const ms_prediction *p = &plot->plans[i].prediction;
        e.highest = ms_max(e.highest, ms_max(p->peak_bytes, p->capacity_bytes));
        if (room_bytes(p) != e.capacity)
            e.capacity = 0.0;
        e.outside = ms_max(e.outside, p->outside_bytes);
        for (int rank = 0; rank < p->num_stages; rank++)
            e.parts |= categories_of(&p->stages[rank]);
    }
    return e;
}

static void write_part_names(ms_arena *arena, FILE *out)
{
    const char *names = "";
    for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
        names = ms_arena_printf(arena, "%s%s%s", names, part == 0 ? "" : "|",
                                ms_memory_category_titles[part]);
    ms_script_text(out, "part_names", names);
}

ms_status ms_memory_plot_write_script(ms_ctx *cx, FILE *out, const ms_memory_plot *plot,
                                      const char *name, ms_picture_format format)
{
    double bottom = 34.0 + LINE * most_label_lines(plot);
    extent e = extent_of(plot);
    ms_script script = {.kind = "memory",
                        .name = name,
                        .format = format,
                        .width = width_of(plot),
                        .height = TOP + HEIGHT + bottom,
                        .margins = {LEFT, RIGHT, TOP, bottom},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "num_plans", plot->num_plans);
    ms_script_number(out, "highest", ms_gib(e.highest));
    ms_script_number(out, "capacity", ms_gib(e.capacity));
    ms_script_number(out, "outside", ms_gib(e.outside));
    ms_script_number(out, "parts", e.parts);
    write_part_names(cx->arena, out);
    return ms_script_end(cx, out, &script);
}

static void write_rank(ms_jout *out, const ms_stage_prediction *stage)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "rank", stage->rank);
    ms_jout_number_field(out, "peak_bytes", stage->peak_bytes);
    ms_jout_begin_object_field(out, "parts");
    for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
        ms_jout_number_field(out, ms_memory_category_names[part], stage->memory[part]);
    ms_jout_end_object(out);
    ms_jout_end_object(out);
}

void ms_memory_plot_write_json(ms_jout *out, const ms_memory_plot *plot)
{
    ms_jout_begin_array_field(out, "plans");
    for (int i = 0; i < plot->num_plans; i++) {
        const ms_prediction *p = &plot->plans[i].prediction;
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "name", plot->plans[i].name);
        ms_jout_key(out, "plan");
        ms_plan_write_json(out, plot->plans[i].plan);
        ms_jout_bool_field(out, "fits", p->fits);
        ms_jout_number_field(out, "fits_probability", p->fits_probability);
        ms_jout_number_field(out, "capacity_bytes", p->capacity_bytes);
        ms_jout_number_field(out, "peak_bytes", p->peak_bytes);
        ms_jout_number_field(out, "device_bytes", p->peak_bytes + p->outside_bytes);
        ms_jout_number_field(out, "worst_rank", p->worst_rank);
        ms_jout_begin_array_field(out, "ranks");
        for (int rank = 0; rank < p->num_stages; rank++)
            write_rank(out, &p->stages[rank]);
        ms_jout_end_array(out);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_memory_plot_print(FILE *out, const ms_memory_plot *plot)
{
    ms_arena *arena = plot->arena;
    ms_print(out, "memory    %s\n\n", title(plot));
    ms_table *table = MS_TABLE(arena, "LrrrrlrL", "plan", "worst rank", "peak (GiB)",
                               "of (GiB)", "spare (GiB)", "fits", "risk (%)", "mesh");
    for (int i = 0; i < plot->num_plans; i++) {
        const ms_priced_plan *plan = &plot->plans[i];
        const ms_prediction *p = &plan->prediction;
        ms_table_cell(table, "%s", plan->name != NULL ? plan->name : "flags");
        ms_table_cell(table, "%d", p->worst_rank);
        ms_table_cell(table, "%.2f", ms_gib(p->peak_bytes));
        ms_table_cell(table, "%.2f", ms_gib(p->capacity_bytes));
        ms_table_cell(table, "%.2f", ms_gib(ms_prediction_free_bytes(p, p->peak_bytes)));
        ms_table_cells(table, "%s\t%.0f", p->fits ? "yes" : "NO",
                       100.0 * (1.0 - p->fits_probability));
        ms_table_cell(table, "%s", ms_caption_axes(arena, plan->plan));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}
