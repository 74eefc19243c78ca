/* Boxes come from the replay; everything after ms_timeline_make sees boxes only. */
#include "plots/timeline.h"

#include "base/number.h"
#include "plots/caption.h"

#define WIDTH      1400.0
#define LEFT       70.0
#define RIGHT      24.0
#define TOP        92.0
#define BOTTOM     56.0
#define MAX_LABELS 1200 /* more boxes: a label each would be unreadable */

const char *const ms_box_kind_names[] = {"forward",         "backward", "backward-input",
                                         "backward-weight", "gather",   "reduce",
                                         "optimizer",       NULL};

/* ---- boxes ---- */

typedef struct boxes {
    ms_box *boxes;
    long num;
} boxes;

static void add_box(boxes *b, ms_box box)
{
    if (box.end_s > box.start_s)
        b->boxes[b->num++] = box;
}

/* Of every action; a pair is two steps. */
static double *durations(ms_arena *arena, const ms_schedule *schedule,
                         const ms_stage_times *times)
{
    int num_actions = schedule->first_action[schedule->shape.num_ranks];
    double *out = MS_NEW_ARRAY(arena, num_actions, double);
    for (int i = 1; i <= schedule->num_steps; i++)
        out[schedule->step_action[i]] += ms_step_cost_s(
            schedule, &schedule->step_costs[schedule->steps[i].cost], times);
    return out;
}

/* A replay, action by action. */
typedef struct replayed {
    const ms_schedule *schedule;
    const double *end_s, *lasts_s; /* by action */
    ms_replay_result result;
} replayed;

static replayed replay_schedule(ms_arena *arena, const ms_schedule *schedule,
                                const ms_stage_times *times)
{
    int num_ranks = schedule->shape.num_ranks;
    double *end_s = MS_NEW_ARRAY(arena, schedule->first_action[num_ranks], double);
    replayed r = {.schedule = schedule,
                  .end_s = end_s,
                  .lasts_s = durations(arena, schedule, times),
                  .result = {.end_s = MS_NEW_ARRAY(arena, num_ranks, double)}};
    ms_replay_actions(schedule, times, arena, end_s);
    ms_replay(schedule, times, arena, &r.result);
    return r;
}

static ms_box_kind kind_of(int action)
{
    static const ms_box_kind kinds[MS_NUM_ACTIONS] = {
        [MS_FORWARD] = MS_BOX_FORWARD,      [MS_BACKWARD] = MS_BOX_BACKWARD,
        [MS_BACKWARD_INPUT] = MS_BOX_INPUT, [MS_BACKWARD_WEIGHT] = MS_BOX_WEIGHT,
        [MS_OVERLAP] = MS_BOX_FORWARD,
    };
    return kinds[action];
}

static void add_action(const replayed *r, int rank, int index, boxes *b)
{
    const ms_schedule_shape *shape = &r->schedule->shape;
    const ms_action *action = &r->schedule->actions[index];
    ms_box box = {.lane = rank,
                  .start_s = r->end_s[index] - r->lasts_s[index],
                  .end_s = r->end_s[index],
                  .kind = kind_of(action->kind),
                  .microbatch = action->microbatch,
                  .chunk = ms_schedule_chunk(shape, action->stage)};
    if (action->kind == MS_OVERLAP)
        box.half = MS_BOX_UPPER;
    add_box(b, box);
    if (action->kind != MS_OVERLAP)
        return;
    box.kind = MS_BOX_BACKWARD;
    box.half = MS_BOX_LOWER;
    box.microbatch = action->backward_microbatch;
    box.chunk = ms_schedule_chunk(shape, action->backward_stage);
    add_box(b, box);
}

static ms_status check_size(ms_ctx *cx, const ms_schedule *schedule)
{
    if (schedule->num_steps <= MS_MAX_BOXES)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "%d actions of %d pipeline ranks are too many to be drawn: at most %d",
            schedule->num_steps, schedule->shape.num_ranks, MS_MAX_BOXES);
    ms_hint(cx, "draw fewer micro-batches: a smaller --global-batch");
    return MS_EINPUT;
}

/* A rank's actions, with what it waits for before the first one and after the last one. */
static void add_lane(const ms_timeline *t, const replayed *r, const ms_stage_times *times,
                     int rank, boxes *b)
{
    const ms_schedule *schedule = r->schedule;
    int first = schedule->first_action[rank], last = schedule->first_action[rank + 1] - 1;
    double release_s = times[schedule->actions[first].stage].release_s;
    ms_box wait = {.lane = rank, .microbatch = -1, .kind = MS_BOX_GATHER};
    wait.end_s = ms_min(release_s, r->end_s[first] - r->lasts_s[first]);
    add_box(b, wait);
    for (int i = first; i <= last; i++)
        add_action(r, rank, i, b);
    wait.kind = MS_BOX_REDUCE;
    wait.start_s = r->end_s[last];
    wait.end_s = r->result.end_s[rank];
    add_box(b, wait);
    wait.kind = MS_BOX_OPTIMIZER;
    wait.start_s = r->result.makespan_s;
    wait.end_s = t->step_s;
    add_box(b, wait);
}

ms_status ms_timeline_make(ms_ctx *cx, const ms_planned *planned, ms_timeline *out)
{
    const ms_schedule *schedule = planned->schedule;
    int num_ranks = schedule->shape.num_ranks;
    MS_TRY(check_size(cx, schedule));
    *out = (ms_timeline){.plan = planned->plan,
                         .workload = planned->workload,
                         .num_lanes = num_ranks,
                         .num_chunks = schedule->num_chunks};
    ms_predict_planned(cx, planned, &out->prediction);
    out->step_s = out->prediction.step_s;
    ms_stage_times *times = MS_NEW_ARRAY(cx->arena, schedule->num_stages, ms_stage_times);
    ms_step_durations(&planned->pipeline, planned->sharding, cx->arena, times);
    replayed replay = replay_schedule(cx->arena, schedule, times);
    boxes b = {MS_NEW_ARRAY(cx->arena, 2L * schedule->num_steps + 3L * num_ranks, ms_box),
               0};
    for (int rank = 0; rank < num_ranks; rank++)
        add_lane(out, &replay, times, rank, &b);
    out->boxes = b.boxes;
    out->num_boxes = b.num;
    return MS_OK;
}

/* ---- files ---- */

void ms_timeline_write_data(FILE *out, const ms_timeline *timeline)
{
    fputs("# rank\tstart (s)\tend (s)\tkind\tmicro-batch\tchunk\thalf\n# kinds:", out);
    for (int i = 0; i < MS_NUM_BOX_KINDS; i++)
        fprintf(out, " %d %s", i, ms_box_kind_names[i]);
    fputs("; micro-batch -1: of none; half 1 upper, 2 lower, 0 whole lane\n", out);
    for (long i = 0; i < timeline->num_boxes; i++) {
        const ms_box *box = &timeline->boxes[i];
        fprintf(out, "%d\t%.9g\t%.9g\t%d\t%d\t%d\t%d\n", box->lane, box->start_s,
                box->end_s, (int)box->kind, box->microbatch, box->chunk, (int)box->half);
    }
}

static double lane_px(int num_lanes)
{
    double all = num_lanes <= 8 ? 52.0 * num_lanes : 300.0 + 15.0 * num_lanes;
    return (all < 1200.0 ? all : 1200.0) / num_lanes;
}

/* Ranks are named where there is room for it. */
static int rank_step(double px)
{
    int step = 1;
    while (px * step < 14.0)
        step *= 2;
    return step;
}

/* Kinds that can be seen, one bit each. */
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

static const char *step_text(ms_arena *arena, double step_s)
{
    ms_time_unit unit = ms_time_unit_of(step_s);
    return ms_arena_printf(arena, "%.4g %s", step_s * unit.per_s, unit.name);
}

static const char *subtitle(ms_arena *arena, const ms_timeline *t)
{
    return ms_arena_printf(
        arena, "%s · %ld micro-batches · %s · step %s · bubble %.1f %% · MFU %.1f %%",
        ms_caption_axes(arena, t->plan), ms_plan_microbatches(t->plan),
        schedule_text(arena, t), step_text(arena, t->step_s),
        100.0 * t->prediction.bubble_s / t->step_s, 100.0 * t->prediction.mfu_frac);
}

ms_status ms_timeline_write_script(ms_ctx *cx, FILE *out, const ms_timeline *timeline,
                                   const char *name, ms_picture_format format)
{
    ms_time_unit unit = ms_time_unit_of(timeline->step_s);
    double px = lane_px(timeline->num_lanes), inner = WIDTH - LEFT - RIGHT;
    ms_script script = {
        .kind = "timeline",
        .name = name,
        .format = format,
        .width = WIDTH,
        .height = TOP + BOTTOM + px * timeline->num_lanes,
        .title = ms_arena_printf(
            cx->arena, "Pipeline of one step: %s",
            ms_caption_job(cx->arena, timeline->plan, timeline->workload)),
        .subtitle = subtitle(cx->arena, timeline),
    };
    double mean_px = inner * timeline->num_lanes / (double)timeline->num_boxes;
    ms_script_begin(out, &script);
    ms_script_number(out, "left", LEFT);
    ms_script_number(out, "right", RIGHT);
    ms_script_number(out, "top", TOP);
    ms_script_number(out, "bottom", BOTTOM);
    ms_script_number(out, "num_lanes", timeline->num_lanes);
    ms_script_number(out, "num_chunks", timeline->num_chunks);
    ms_script_number(out, "lane_px", px);
    ms_script_number(out, "rank_step", rank_step(px));
    ms_script_number(out, "step_s", timeline->step_s);
    ms_script_number(out, "unit", unit.per_s);
    ms_script_text(out, "unit_name", unit.name);
    ms_script_number(out, "px_per_s", inner / timeline->step_s);
    ms_script_number(out, "kinds", kinds_of(timeline, inner / timeline->step_s));
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
    ms_jout_key(out, "boxes");
    ms_jout_begin_array(out);
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
    fprintf(out, "pipeline  %s\nplan      %s\n",
            ms_caption_job(arena, timeline->plan, timeline->workload),
            subtitle(arena, timeline));
}
