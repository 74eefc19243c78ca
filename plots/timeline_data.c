#include "plots/timeline_data.h"

#include "base/number.h"
#include "base/print.h"
#include "plots/caption.h"

#define WIDTH      1400.0
#define LEFT       70.0
#define RIGHT      24.0
#define TOP        92.0
#define BOTTOM     56.0
#define MAX_LABELS 1200 /* most labels drawn; more would be unreadable */

static ms_status check_size(ms_ctx *cx, const ms_schedule *schedule)
{
    if (schedule->num_slots <= MS_MAX_BOXES)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "%d actions of %d pipeline ranks are too many to be drawn: at most %d",
            schedule->num_slots, schedule->shape.num_ranks, MS_MAX_BOXES);
    return ms_hint(cx, "draw fewer micro-batches: a smaller --global-batch");
}

/* Sets step time, MFU and bubble to the simulated ones (undisturbed: as predicted). */
static void fill_times(const ms_planned *planned, ms_timeline *t)
{
    const ms_simulation *s = &t->simulation;
    t->step_s = s->step_s;
    t->bubble_s = s->actors[s->last_actor].bubble_s;
    t->mfu_frac = t->prediction.mfu_frac * t->prediction.step_s / s->step_s;
    t->num_lanes = planned->schedule->shape.num_ranks;
    t->num_chunks = planned->schedule->num_chunks;
}

/* The simulated actor whose actions end last, the first of several. */
static int latest_actor(const ms_simulation *s)
{
    int latest = 0;
    double end_s = -1.0;
    for (int i = 1; i <= s->graph->num_tasks; i++) {
        const ms_task_tag *tag = ms_graph_tag(s->graph, i);
        if (tag->actor < 0 || tag->kind > MS_TASK_OVERLAP || s->end_s[i] < end_s ||
            (s->end_s[i] == end_s && tag->actor >= latest))
            continue;
        end_s = s->end_s[i];
        latest = tag->actor;
    }
    return latest;
}

/* [actor] lane: its pipeline rank if it is in the pipeline of `actor`, otherwise -1. */
static int *lanes_of(ms_arena *arena, const ms_timeline *t, int actor)
{
    const ms_simulation *s = &t->simulation;
    ms_plan_groups groups = ms_plan_groups_of(t->plan);
    int *lanes = MS_NEW_ARRAY(arena, s->num_actors, int);
    long *ranks = MS_NEW_ARRAY(arena, t->num_lanes, long);
    ms_mesh_group_ranks(&groups.mesh, &groups.group[MS_TRAFFIC_PP], s->actors[actor].rank,
                        ranks);
    for (int i = 0; i < s->num_actors; i++)
        lanes[i] = -1;
    for (int lane = 0; lane < t->num_lanes; lane++)
        lanes[s->fold.class_of[ranks[lane]]] = lane;
    return lanes;
}

ms_status ms_timeline_make(ms_ctx *cx, const ms_planned *planned,
                           const ms_simulate_options *options, ms_timeline *out)
{
    MS_TRY(check_size(cx, planned->schedule));
    *out = (ms_timeline){.plan = planned->plan, .workload = planned->workload};
    (void)ms_predict_planned(cx, planned, &out->prediction);
    MS_TRY(ms_simulate(cx, planned, options, &out->simulation));
    fill_times(planned, out);
    const ms_simulation *s = &out->simulation;
    out->num_boxes = ms_boxes_make(
        cx->arena, s, lanes_of(cx->arena, out, latest_actor(s)), &out->boxes);
    return MS_OK;
}

/* ---- files ---- */

void ms_timeline_write_data(FILE *out, const ms_timeline *timeline)
{
    fputs("# rank\tstart (s)\tend (s)\tkind\tmicro-batch\tchunk\thalf", out);
    ms_boxes_write_kinds(out);
    for (long i = 0; i < timeline->num_boxes; i++) {
        const ms_box *box = &timeline->boxes[i];
        ms_print(out, "%d\t%.9g\t%.9g\t%d\t%d\t%d\t%d\n", box->lane, box->start_s,
                 box->end_s, (int)box->kind, box->microbatch, box->chunk, (int)box->half);
    }
}

static double lane_px(int num_lanes)
{
    double all = num_lanes <= 8 ? 52.0 * num_lanes : 300.0 + 15.0 * num_lanes;
    return (all < 1200.0 ? all : 1200.0) / num_lanes;
}

/* Number of lanes from one labelled lane to the next, so that labels do not overlap. */
static int rank_step(double px)
{
    int step = 1;
    while (px * step < 14.0)
        step *= 2;
    return step;
}

/* Bit mask (1 << ms_box_kind) of the kinds of boxes at least half a pixel wide. */
static int kinds_of(const ms_timeline *timeline, double px_per_s)
{
    int kinds = 0;
    for (long i = 0; i < timeline->num_boxes; i++) {
        const ms_box *box = &timeline->boxes[i];
        if ((box->end_s - box->start_s) * px_per_s >= 0.5)
            kinds |= 1 << box->kind;
    }
    return kinds;
}

static const char *schedule_text(ms_arena *arena, const ms_timeline *t)
{
    const ms_plan *plan = t->plan;
    if (t->num_lanes == 1)
        return "no pipeline";
    if (t->num_chunks == 1)
        return ms_plan_schedule_name(plan);
    return ms_arena_printf(arena, "%s, %d chunks per rank (later ones lighter)",
                           ms_plan_schedule_name(plan), t->num_chunks);
}

static const char *subtitle(ms_arena *arena, const ms_timeline *t)
{
    return ms_arena_printf(
        arena, "%s · %s · %s%s · step %s · bubble %.1f %% · MFU %.1f %%",
        ms_caption_axes(arena, t->plan), ms_caption_microbatches(arena, t->plan),
        schedule_text(arena, t), ms_caption_disturbance(arena, &t->simulation),
        ms_caption_time(arena, t->step_s), 100.0 * t->bubble_s / t->step_s,
        100.0 * t->mfu_frac);
}

ms_status ms_timeline_write_script(ms_ctx *cx, FILE *out, const ms_timeline *timeline,
                                   const char *name, ms_picture_format format)
{
    ms_time_unit unit = ms_time_unit_of(timeline->step_s);
    double px = lane_px(timeline->num_lanes), inner = WIDTH - LEFT - RIGHT;
    ms_script script = {.kind = "timeline",
                        .name = name,
                        .format = format,
                        .width = WIDTH,
                        .height = TOP + BOTTOM + px * timeline->num_lanes,
                        .margins = {LEFT, RIGHT, TOP, BOTTOM},
                        .title = ms_arena_printf(cx->arena, "Pipeline of one step: %s",
                                                 ms_caption_job(cx->arena, timeline->plan,
                                                                timeline->workload)),
                        .subtitle = subtitle(cx->arena, timeline)};
    double mean_px = inner * timeline->num_lanes / (double)timeline->num_boxes;
    int kinds = kinds_of(timeline, inner / timeline->step_s);
    int communication = 1 << MS_BOX_GATHER | 1 << MS_BOX_REDUCE;
    ms_script_begin(out, &script);
    ms_script_number(out, "num_lanes", timeline->num_lanes);
    ms_script_number(out, "num_chunks", timeline->num_chunks);
    ms_script_number(out, "lane_px", px);
    ms_script_number(out, "rank_step", rank_step(px));
    ms_script_number(out, "step_s", timeline->step_s);
    ms_script_number(out, "unit", unit.per_s);
    ms_script_text(out, "unit_name", unit.name);
    ms_script_number(out, "px_per_s", inner / timeline->step_s);
    ms_script_number(out, "kinds", kinds);
    ms_script_number(out, "communication_lane",
                     (kinds & communication) != 0 && px >= 24.0);
    ms_script_number(out, "label_boxes", timeline->num_boxes <= MAX_LABELS && px >= 12.0);
    ms_script_number(out, "border_px",
                     mean_px >= 14.0  ? 1.0
                     : mean_px >= 3.0 ? 0.35
                                      : 0.0);
    return ms_script_end(cx, out, &script);
}

void ms_timeline_write_json(ms_jout *out, const ms_timeline *timeline)
{
    ms_jout_number_field(out, "step_s", timeline->step_s);
    ms_jout_key(out, "plan");
    ms_plan_write_json(out, timeline->plan);
    ms_jout_begin_array_field(out, "boxes");
    for (long i = 0; i < timeline->num_boxes; i++) {
        const ms_box *box = &timeline->boxes[i];
        ms_jout_begin_object(out);
        ms_jout_number_field(out, "rank", box->lane);
        ms_jout_text_field(out, "kind", ms_box_kind_names[box->kind]);
        ms_jout_number_field(out, "start_s", box->start_s);
        ms_jout_number_field(out, "end_s", box->end_s);
        if (box->microbatch >= 0) {
            ms_jout_number_field(out, "microbatch", box->microbatch);
            ms_jout_number_field(out, "chunk", box->chunk);
        }
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

void ms_timeline_print(FILE *out, ms_arena *arena, const ms_timeline *timeline)
{
    ms_print(out, "pipeline  %s\nplan      %s\n",
             ms_caption_job(arena, timeline->plan, timeline->workload),
             subtitle(arena, timeline));
}
