#include "plots/memory_curve_data.h"

#include "base/number.h"
#include "base/print.h"
#include "plots/caption.h"
#include "sim/simulate/simulated_timeline.h"
#include "sim/step/prediction_text.h"

#define WIDTH     1400.0
#define LEFT      70.0
#define RIGHT     76.0
#define TOP       116.0
#define HEIGHT    400.0 /* height of the axes, pixels */
#define BOTTOM    56.0
#define LEGEND    26.0  /* height of the lane of the rank's actions, pixels */
#define COLUMNS   1254  /* pixel columns: WIDTH - LEFT - RIGHT */
#define MAX_BOXES 20000 /* most boxes drawn; more could not be distinguished */

/* The memory categories from the bottom of the stack, constant ones first. */
static const ms_memory_category stack[MS_NUM_MEMORY_CATEGORIES] = {
    MS_MEMORY_PARAMS,       MS_MEMORY_OPTIMIZER, MS_MEMORY_GATHERED_PARAMS,
    MS_MEMORY_COMM_BUFFERS, MS_MEMORY_CONTEXT,   MS_MEMORY_GRADS,
    MS_MEMORY_ACTIVATIONS,  MS_MEMORY_LOGITS,    MS_MEMORY_FRAGMENTATION};

/* ---- making ---- */

static ms_status choose_actor(ms_ctx *cx, long rank, ms_memory_curve *c)
{
    const ms_simulation *s = &c->simulation;
    if (rank >= s->fold.num_ranks) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "there is no rank %ld", rank);
        return ms_hint(cx, "the plan has ranks 0 to %ld", s->fold.num_ranks - 1);
    }
    int chosen = rank < 0 ? 0 : s->fold.class_of[rank];
    for (int i = 1; rank < 0 && i < s->num_actors; i++)
        if (s->actors[i].peak_bytes > s->actors[chosen].peak_bytes)
            chosen = i;
    c->actor = &s->actors[chosen];
    c->rank = rank < 0 ? c->actor->rank : rank;
    return MS_OK;
}

static void fill_boxes(ms_ctx *cx, ms_memory_curve *c)
{
    const ms_simulation *s = &c->simulation;
    int *lanes = MS_NEW_ARRAY(cx->arena, s->num_actors, int);
    for (int i = 0; i < s->num_actors; i++)
        lanes[i] = &s->actors[i] == c->actor ? 0 : -1;
    c->num_boxes = ms_boxes_make(cx->arena, s, lanes, &c->boxes);
    if (c->num_boxes > MAX_BOXES)
        c->num_boxes = 0;
}

ms_status ms_memory_curve_make(ms_ctx *cx, const ms_planned *planned,
                               const ms_simulate_options *options, long rank,
                               ms_memory_curve *out)
{
    *out = (ms_memory_curve){
        .arena = cx->arena, .plan = planned->plan, .workload = planned->workload};
    (void)ms_predict_planned(cx, planned, &out->prediction);
    MS_TRY(ms_simulate(cx, planned, options, &out->simulation));
    MS_TRY(choose_actor(cx, rank, out));
    const ms_actor *actor = out->actor;
    ms_thinned_samples thin = ms_memory_samples_thin(
        cx->arena, actor->samples, actor->num_samples, out->simulation.step_s, COLUMNS);
    out->num_samples = thin.num;
    out->samples = thin.samples;
    out->peak = thin.peak;
    out->num_alive = out->prediction.stages[actor->pipeline_rank].live_microbatches;
    fill_boxes(cx, out);
    return MS_OK;
}

/* ---- words ---- */

static const char *title(const ms_memory_curve *c)
{
    return ms_arena_printf(c->arena, "Memory over one step: %s",
                           ms_caption_job(c->arena, c->plan, c->workload));
}

static const char *subtitle(const ms_memory_curve *c)
{
    ms_arena *arena = c->arena;
    long alike = c->actor->multiplicity;
    const char *others = "";
    if (alike > 1)
        others = ms_arena_printf(arena, " and %ld alike", alike - 1);
    return ms_arena_printf(
        arena, "%s · %s · %s%s · rank %ld (pp %d)%s", ms_caption_axes(arena, c->plan),
        ms_caption_choices(arena, c->plan), ms_caption_microbatches(arena, c->plan),
        ms_caption_disturbance(arena, &c->simulation), c->rank, c->actor->pipeline_rank,
        others);
}

static const char *unfit_text(const ms_memory_curve *c)
{
    double free_bytes = ms_prediction_free_bytes(&c->prediction, c->actor->peak_bytes);
    return free_bytes >= 0.0
               ? ""
               : ms_arena_printf(c->arena, ", %.1f GiB too much,", ms_gib(-free_bytes));
}

/* "peak 63.2 GiB + 1.6 GiB of context and communicators of 79.1 GiB at 412 ms, during backward 3, with activations of ... saved" */
static const char *peak_text(const ms_memory_curve *c)
{
    ms_arena *arena = c->arena;
    const ms_actor *a = c->actor;
    double time_s = c->samples[c->peak].time_s;
    const char *during = "";
    int task = a->peak_task;
    if (task != 0 && ms_graph_tag(c->simulation.graph, task)->kind == MS_TASK_OVERLAP)
        during = ", during a forward with a backward";
    else if (task != 0)
        during = ms_arena_printf(arena, ", during %s",
                                 ms_task_phrase(arena, &c->simulation, task));
    return ms_arena_printf(
        arena, "peak %.1f GiB%s of %.1f GiB%s at %s%s, with activations of %d %s saved",
        ms_gib(a->peak_bytes), ms_outside_text(arena, &c->prediction),
        ms_gib(c->prediction.capacity_bytes), unfit_text(c),
        time_s == 0.0 ? "the start" : ms_caption_time(arena, time_s), during,
        c->num_alive, c->num_alive == 1 ? "forward" : "forwards");
}

/* Legend of the categories from the bottom of the stack, separated by '|': name and GiB
 * at the peak; empty for a category that is 0 throughout. */
static const char *legend_entries(const ms_memory_curve *c)
{
    const char *text = "";
    for (int k = 0; k < MS_NUM_MEMORY_CATEGORIES; k++) {
        double most_bytes = 0.0;
        for (int i = 0; i < c->num_samples; i++)
            most_bytes = ms_max(most_bytes, c->samples[i].bytes[stack[k]]);
        const char *entry = "";
        if (most_bytes > 0.0)
            entry =
                ms_arena_printf(c->arena, "%s %.1f", ms_memory_category_titles[stack[k]],
                                ms_gib(c->samples[c->peak].bytes[stack[k]]));
        text = ms_arena_printf(c->arena, "%s%s%s", text, k == 0 ? "" : "|", entry);
    }
    return text;
}

/* ---- files ---- */

static void write_sample(FILE *out, double time_s, const ms_memory_sample *sample)
{
    ms_print(out, "%.9g", time_s);
    for (int k = 0; k < MS_NUM_MEMORY_CATEGORIES; k++)
        ms_print(out, "\t%.9g", ms_gib(sample->bytes[stack[k]]));
    fputc('\n', out);
}

void ms_memory_curve_write_data(FILE *out, const ms_memory_curve *curve)
{
    fputs("# from this time on (s), memory in GiB\n# time", out);
    for (int k = 0; k < MS_NUM_MEMORY_CATEGORIES; k++)
        ms_print(out, "\t%s", ms_memory_category_names[stack[k]]);
    fputc('\n', out);
    for (int i = 0; i < curve->num_samples; i++)
        write_sample(out, curve->samples[i].time_s, &curve->samples[i]);
    write_sample(out, curve->simulation.step_s, &curve->samples[curve->num_samples - 1]);
    fputs("\n\n# actions of the rank\n# start (s)\tend (s)\tkind\tmicro-batch\thalf",
          out);
    ms_boxes_write_kinds(out);
    for (long i = 0; i < curve->num_boxes; i++) {
        const ms_box *box = &curve->boxes[i];
        ms_print(out, "%.9g\t%.9g\t%d\t%d\t%d\n", box->start_s, box->end_s,
                 (int)box->kind, box->microbatch, (int)box->half);
    }
}

/* Bit mask (1 << ms_box_kind) of the kinds of the rank's actions. */
static int kinds_of(const ms_memory_curve *curve)
{
    int kinds = 0;
    for (long i = 0; i < curve->num_boxes; i++)
        if (curve->boxes[i].half != MS_BOX_COMMUNICATION)
            kinds |= 1 << curve->boxes[i].kind;
    return kinds;
}

static double bottom_px(const ms_memory_curve *curve)
{
    return curve->num_boxes > 0 ? BOTTOM + LEGEND : BOTTOM;
}

static void write_variables(FILE *out, const ms_memory_curve *curve)
{
    double step_s = curve->simulation.step_s;
    ms_time_unit unit = ms_time_unit_of(step_s);
    ms_script_number(out, "step_s", step_s);
    ms_script_number(out, "unit", unit.per_s);
    ms_script_text(out, "unit_name", unit.name);
    ms_script_number(out, "capacity", ms_gib(curve->prediction.capacity_bytes));
    ms_script_number(out, "outside", ms_gib(curve->prediction.outside_bytes));
    ms_script_number(out, "peak", ms_gib(curve->actor->peak_bytes));
    ms_script_number(out, "peak_s", curve->samples[curve->peak].time_s);
    ms_script_text(out, "peak_text", peak_text(curve));
    ms_script_text(out, "part_names", legend_entries(curve));
    ms_script_number(out, "num_samples", curve->num_samples);
    ms_script_number(out, "num_boxes", (double)curve->num_boxes);
    ms_script_number(out, "kinds", kinds_of(curve));
}

ms_status ms_memory_curve_write_script(ms_ctx *cx, FILE *out,
                                       const ms_memory_curve *curve, const char *name,
                                       ms_picture_format format)
{
    ms_script script = {.kind = "memory_curve",
                        .name = name,
                        .format = format,
                        .width = WIDTH,
                        .height = TOP + HEIGHT + bottom_px(curve),
                        .margins = {LEFT, RIGHT, TOP, bottom_px(curve)},
                        .title = title(curve),
                        .subtitle = subtitle(curve)};
    ms_script_begin(out, &script);
    write_variables(out, curve);
    return ms_script_end(cx, out, &script);
}

void ms_memory_curve_write_json(ms_jout *out, const ms_memory_curve *curve)
{
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, curve->plan);
    ms_jout_number_field(out, "rank", (double)curve->rank);
    ms_jout_number_field(out, "pipeline_rank", curve->actor->pipeline_rank);
    ms_jout_number_field(out, "step_s", curve->simulation.step_s);
    ms_jout_number_field(out, "capacity_bytes", curve->prediction.capacity_bytes);
    ms_jout_number_field(out, "outside_bytes", curve->prediction.outside_bytes);
    ms_jout_number_field(out, "peak_bytes", curve->actor->peak_bytes);
    ms_jout_number_field(out, "peak_at_s", curve->samples[curve->peak].time_s);
    ms_jout_begin_array_field(out, "samples");
    for (int i = 0; i < curve->num_samples; i++) {
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "time_s", curve->samples[i].time_s);
        for (int part = 0; part < MS_NUM_MEMORY_CATEGORIES; part++)
            ms_jout_number_field(out, ms_memory_category_names[part],
                                 curve->samples[i].bytes[part]);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_memory_curve_print(FILE *out, const ms_memory_curve *curve)
{
    ms_print(out, "memory    %s\nplan      %s\nrank      %s\n", title(curve),
             subtitle(curve), peak_text(curve));
}
