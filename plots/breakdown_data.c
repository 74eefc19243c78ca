#include "plots/breakdown_data.h"

#include "base/number.h"
#include "base/print.h"
#include "base/table.h"
#include "plots/caption.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

#define WIDTH       1180.0
#define LEFT        250.0 /* pixels; room for the names of plans */
#define RIGHT       40.0
#define TOP         104.0
#define BOTTOM      56.0
#define LINE        16.0  /* height of a line of a plan's name, pixels */
#define ROW         64.0  /* least height of a plan's row, pixels */
#define NAME_BYTES  32    /* longest line of a plan's name */
#define TOTAL_PX    150   /* room for the text behind a bar */
#define ROUNDING    1e-12 /* share of a step that is a rounding error */
#define LEAST_SHARE 5e-4  /* share of a step from which a part is in the legend */
#define PART_PX     38.0  /* least width of a part with its share written on it */

const char *const ms_step_part_keys[] = {
    "compute_s",           "exposed_tp_s",    "exposed_cp_s",
    "exposed_ep_s",        "exposed_data_s",  "exposed_experts_s",
    "exposed_replicate_s", "exposed_other_s", "bubble_s",
    "optimizer_s",         "host_s",          NULL};

static const char *const titles[MS_NUM_STEP_PARTS] = {"compute",
                                                      "tp",
                                                      "cp",
                                                      "ep",
                                                      "data parallel",
                                                      "experts' data parallel",
                                                      "replicas",
                                                      "other communication",
                                                      "bubble",
                                                      "optimizer",
                                                      "host"};

static ms_step_part part_of_group(ms_traffic_group group)
{
    static const ms_step_part parts[MS_NUM_TRAFFIC_GROUPS] = {
        [MS_TRAFFIC_TP] = MS_PART_TP,
        [MS_TRAFFIC_CP] = MS_PART_CP,
        [MS_TRAFFIC_EP] = MS_PART_EP,
        [MS_TRAFFIC_FSDP] = MS_PART_DATA,
        [MS_TRAFFIC_EXPERT_FSDP] = MS_PART_EXPERTS,
        [MS_TRAFFIC_REPLICATE] = MS_PART_REPLICATE,
        [MS_TRAFFIC_ALL] = MS_PART_DATA,
        [MS_TRAFFIC_EXPERT_ALL] = MS_PART_EXPERTS,
        [MS_TRAFFIC_SECONDARY] = MS_PART_DATA,
        [MS_TRAFFIC_EXPERT_SECONDARY] = MS_PART_EXPERTS,
        [MS_TRAFFIC_PP] = MS_PART_OTHER,
        [MS_TRAFFIC_WORLD] = MS_PART_OTHER,
    };
    return parts[group];
}

void ms_step_parts(const ms_prediction *p, double out[MS_NUM_STEP_PARTS])
{
    memset(out, 0, MS_NUM_STEP_PARTS * sizeof *out);
    out[MS_PART_COMPUTE] = p->compute_s;
    out[MS_PART_BUBBLE] = p->bubble_s;
    out[MS_PART_OPTIMIZER] = p->optimizer_s;
    out[MS_PART_HOST] = p->host_s;
    double sum_s = 0.0;
    for (int i = 0; i < p->num_axes; i++) {
        double exposed_s = p->axes[i].exposed_s;
        out[part_of_group(p->axes[i].group)] += exposed_s;
        sum_s += exposed_s;
    }
    /* axes whose estimates exceed the exposed time share it; what none explains is other */
    if (sum_s > p->exposed_comm_s && sum_s > 0.0)
        for (int part = MS_PART_TP; part <= MS_PART_OTHER; part++)
            out[part] *= p->exposed_comm_s / sum_s;
    else if (p->exposed_comm_s - sum_s > ROUNDING * p->step_s)
        out[MS_PART_OTHER] += p->exposed_comm_s - sum_s;
}

/* ---- words ---- */

static const ms_priced_plan *fastest_plan(const ms_breakdown *plot)
{
    const ms_priced_plan *fastest = plot->plans;
    for (int i = 1; i < plot->num_plans; i++)
        if (plot->plans[i].prediction.step_s < fastest->prediction.step_s)
            fastest = &plot->plans[i];
    return fastest;
}

static const char *title(const ms_breakdown *plot)
{
    ms_arena *arena = plot->arena;
    const ms_priced_plan *fastest = fastest_plan(plot);
    if (plot->num_plans > 1)
        return ms_arena_printf(arena, "Fastest of %d plans: %s, %s a step",
                               plot->num_plans, ms_priced_plan_name(arena, fastest),
                               ms_caption_time(arena, fastest->prediction.step_s));
    const ms_prediction *p = &plot->plans->prediction;
    return ms_arena_printf(
        arena, "A step takes %s and computes for %.0f %% of it: %s",
        ms_caption_time(arena, p->step_s), 100.0 * p->compute_s / p->step_s,
        ms_caption_job(arena, plot->plans->plan, plot->plans->workload));
}

static bool has_interval(const ms_prediction *p)
{
    return isfinite(p->step_low_s) && isfinite(p->step_high_s);
}

static const char *subtitle(const ms_breakdown *plot)
{
    ms_arena *arena = plot->arena;
    const ms_priced_plan *fastest = fastest_plan(plot);
    const ms_prediction *p = &fastest->prediction;
    const char *line = has_interval(p) ? " · lines: 90 % of measured step times" : "";
    if (plot->num_plans == 1)
        return ms_arena_printf(arena, "%.1f %% MFU · %.0f %% waits for communication%s",
                               100.0 * p->mfu_frac, 100.0 * p->exposed_comm_s / p->step_s,
                               line);
    return ms_arena_printf(
        arena, "%s · %.0f %% of its step computes, %.0f %% waits for communication%s",
        ms_caption_job(arena, fastest->plan, fastest->workload),
        100.0 * p->compute_s / p->step_s, 100.0 * p->exposed_comm_s / p->step_s, line);
}

static const char *total_text(ms_arena *arena, const ms_prediction *p)
{
    return ms_arena_printf(arena, "%s, %.1f %% MFU", ms_caption_time(arena, p->step_s),
                           100.0 * p->mfu_frac);
}

/* ---- places ---- */

/* The end of a plan's bar, or of its interval, in seconds. */
static double end_of(const ms_prediction *p)
{
    return has_interval(p) ? ms_max(p->step_s, p->step_high_s) : p->step_s;
}

static double longest_s(const ms_breakdown *plot)
{
    double longest = 0.0;
    for (int i = 0; i < plot->num_plans; i++)
        longest = ms_max(longest, end_of(&plot->plans[i].prediction));
    return longest;
}

/* Seconds at the right end of the axis, beyond room for the totals' text. */
static double axis_s(const ms_breakdown *plot)
{
    double width = WIDTH - LEFT - RIGHT;
    return longest_s(plot) * width / (width - TOTAL_PX);
}

static const char *label_of(const ms_breakdown *plot, int plan)
{
    return ms_priced_plan_label(plot->arena, &plot->plans[plan], NAME_BYTES);
}

static double row_px(const ms_breakdown *plot)
{
    double row = ROW;
    for (int i = 0; i < plot->num_plans; i++)
        row = ms_max(row, 14.0 + LINE * ms_caption_lines(label_of(plot, i)));
    return row;
}

/* ---- files ---- */

static void write_parts(FILE *out, const ms_breakdown *plot, int plan)
{
    const ms_prediction *p = &plot->plans[plan].prediction;
    ms_time_unit unit = ms_time_unit_of(longest_s(plot));
    double parts[MS_NUM_STEP_PARTS], at_s = 0.0;
    double px_per_s = (WIDTH - LEFT - RIGHT) / axis_s(plot);
    ms_step_parts(p, parts);
    for (int i = 0; i < MS_NUM_STEP_PARTS; i++) {
        if (parts[i] <= 0.0)
            continue;
        ms_print(out, "%d\t%.9g\t%.9g\t%d\t", plan, at_s * unit.per_s,
                 (at_s + parts[i]) * unit.per_s, i + 1);
        bool fits = parts[i] * px_per_s >= PART_PX;
        ms_data_text(out, fits ? ms_arena_printf(plot->arena, "%.0f %%",
                                                 100.0 * parts[i] / p->step_s)
                               : "");
        fputc('\n', out);
        at_s += parts[i];
    }
}

void ms_breakdown_write_data(FILE *out, const ms_breakdown *plot)
{
    ms_time_unit unit = ms_time_unit_of(longest_s(plot));
    ms_print(out, "# plan\tfrom (%s)\tto\tpart\tshare; parts:", unit.name);
    for (int i = 0; i < MS_NUM_STEP_PARTS; i++)
        ms_print(out, " %d %s", i + 1, titles[i]);
    fputc('\n', out);
    for (int i = 0; i < plot->num_plans; i++)
        write_parts(out, plot, i);
    ms_print(out, "\n\n# plan\tstep (%s)\tlow\thigh\tend\ttotal\tplace of name\tname\n",
             unit.name);
    for (int i = 0; i < plot->num_plans; i++) {
        const ms_prediction *p = &plot->plans[i].prediction;
        ms_print(out, "%d\t%.9g\t%.9g\t%.9g\t%.9g\t", i, p->step_s * unit.per_s,
                 p->step_low_s * unit.per_s, p->step_high_s * unit.per_s,
                 end_of(p) * unit.per_s);
        ms_data_text(out, total_text(plot->arena, p));
        const char *label = label_of(plot, i); /* gnuplot places its first line */
        double raise_px = 0.5 * LINE * (ms_caption_lines(label) - 1.0);
        ms_print(out, "\t%.9g\t", i - raise_px / row_px(plot));
        ms_data_text(out, label);
        fputc('\n', out);
    }
}

static int num_intervals(const ms_breakdown *plot)
{
    int num = 0;
    for (int i = 0; i < plot->num_plans; i++)
        num += has_interval(&plot->plans[i].prediction);
    return num;
}

/* Bit mask of the parts that are visible in any plan's bar. */
static int parts_of(const ms_breakdown *plot)
{
    int mask = 0;
    for (int i = 0; i < plot->num_plans; i++) {
        double parts[MS_NUM_STEP_PARTS];
        ms_step_parts(&plot->plans[i].prediction, parts);
        for (int part = 0; part < MS_NUM_STEP_PARTS; part++)
            mask |= (parts[part] > LEAST_SHARE * plot->plans[i].prediction.step_s)
                    << part;
    }
    return mask;
}

ms_status ms_breakdown_write_script(ms_ctx *cx, FILE *out, const ms_breakdown *plot,
                                    const char *name, ms_picture_format format)
{
    ms_time_unit unit = ms_time_unit_of(longest_s(plot));
    ms_script script = {.kind = "breakdown",
                        .name = name,
                        .format = format,
                        .width = WIDTH,
                        .height = TOP + row_px(plot) * plot->num_plans + BOTTOM,
                        .margins = {LEFT, RIGHT, TOP, BOTTOM},
                        .title = title(plot),
                        .subtitle = subtitle(plot)};
    ms_script_begin(out, &script);
    ms_script_number(out, "title_left", 24.0);
    ms_script_number(out, "num_plans", plot->num_plans);
    ms_script_number(out, "num_parts", MS_NUM_STEP_PARTS);
    ms_script_number(out, "parts", parts_of(plot));
    ms_script_number(out, "num_intervals", num_intervals(plot));
    ms_script_number(out, "longest", axis_s(plot) * unit.per_s);
    ms_script_text(out, "unit", unit.name);
    for (int i = 0; i < MS_NUM_STEP_PARTS; i++)
        ms_script_text(out, ms_arena_printf(cx->arena, "title_%d", i + 1), titles[i]);
    return ms_script_end(cx, out, &script);
}

void ms_breakdown_write_json(ms_jout *out, const ms_breakdown *plot)
{
    ms_jout_begin_array_field(out, "plans");
    for (int i = 0; i < plot->num_plans; i++) {
        const ms_prediction *p = &plot->plans[i].prediction;
        double parts[MS_NUM_STEP_PARTS];
        ms_step_parts(p, parts);
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "name", plot->plans[i].name);
        ms_jout_number_field(out, "step_s", p->step_s);
        ms_jout_number_field(out, "step_low_s", p->step_low_s);
        ms_jout_number_field(out, "step_high_s", p->step_high_s);
        ms_jout_number_field(out, "mfu_frac", p->mfu_frac);
        ms_jout_bool_field(out, "fits", p->fits);
        ms_jout_begin_object_field(out, "parts");
        for (int part = 0; part < MS_NUM_STEP_PARTS; part++)
            ms_jout_number_field(out, ms_step_part_keys[part], parts[part]);
        ms_jout_end_object(out);
        ms_jout_key(out, "plan");
        ms_plan_write_json(out, plot->plans[i].plan);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_breakdown_print(FILE *out, const ms_breakdown *plot)
{
    ms_arena *arena = plot->arena;
    ms_print(out, "breakdown %s\n          %s\n\n", title(plot), subtitle(plot));
    ms_table *table = MS_TABLE(arena, "Lrr2r2rrrr1r1rL", "plan", "step (s)", "90 % from",
                               "to", "compute (%)", "exposed (%)", "bubble (%)",
                               "optimizer (%)", "host (%)", "MFU (%)", "mesh");
    for (int i = 0; i < plot->num_plans; i++) {
        const ms_priced_plan *plan = &plot->plans[i];
        const ms_prediction *p = &plan->prediction;
        double percent = 100.0 / p->step_s;
        ms_table_cell(table, "%s", plan->name != NULL ? plan->name : "flags");
        ms_table_cell(table, "%.*f", ms_decimals(p->step_s), p->step_s);
        ms_table_cells(table, "%.4g\t%.4g\t%.1f\t%.1f\t%.1f", p->step_low_s,
                       p->step_high_s, percent * p->compute_s,
                       percent * p->exposed_comm_s, percent * p->bubble_s);
        ms_table_cells(table, "%.1f\t%.1f\t%.1f\t%s", percent * p->optimizer_s,
                       percent * p->host_s, 100.0 * p->mfu_frac,
                       ms_caption_axes(arena, plan->plan));
    }
    ms_table_print(table, out);
    fputc('\n', out);
}
