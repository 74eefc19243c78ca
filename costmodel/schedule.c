/* Orders of GPipe, 1F1B and interleaved 1F1B. All three are one pattern: w forwards, then pairs of a
 * forward and a backward, then the remaining backwards; they differ in w and in how the k-th forward or
 * backward of a rank maps to a chunk and a micro-batch. */
#include "costmodel/schedule_priv.h"

#include <assert.h>
#include <string.h>

#define MAX_STAGES  32767           /* ms_action.stage is a short */
#define MAX_ACTIONS ((long)1 << 22) /* about 130 MB of lists and steps */

static int least(int a, int b)
{
    return a < b ? a : b;
}

int ms_schedule_group(const ms_schedule_shape *shape)
{
    if (shape->group > 0)
        return shape->group;
    int rounds = shape->num_microbatches / shape->num_ranks;
    return shape->num_microbatches / (rounds > 1 ? rounds : 1);
}

static bool ragged_group_deadlocks(const ms_schedule_shape *shape, int group)
{
    int ragged = shape->num_microbatches % group;
    int harmless = shape->virtual_stages == 2 ? 1 : 0;
    return ragged > harmless && group + ragged < 2 * shape->num_ranks - 2;
}

/* NULL when an interleaved order of this shape runs to its end. */
static const char *interleaved_objection(const ms_schedule_shape *shape)
{
    if (shape->num_ranks < 2)
        return "an interleaved schedule needs at least 2 pipeline ranks";
    if (shape->virtual_stages < 2)
        return "an interleaved schedule needs at least 2 virtual stages per rank";
    if (shape->group < 0)
        return "the micro-batch group is negative";
    if (shape->group > shape->num_microbatches)
        return "the micro-batch group is larger than the number of micro-batches";
    int group = ms_schedule_group(shape);
    if (group < shape->num_ranks && group != shape->num_microbatches)
        return "a micro-batch group smaller than the number of pipeline ranks deadlocks";
    if (ragged_group_deadlocks(shape, group))
        return "the last micro-batch group is too small: it deadlocks";
    return NULL;
}

static const char *plain_objection(const ms_schedule_shape *shape)
{
    if (shape->virtual_stages != 1)
        return "only the interleaved schedule has virtual stages";
    if (shape->group != 0)
        return "only the interleaved schedule has a micro-batch group";
    return NULL;
}

static const char *objection(const ms_schedule_shape *shape)
{
    if (shape->num_ranks < 1)
        return "a schedule needs at least 1 pipeline rank";
    if (shape->num_microbatches < 1)
        return "a schedule needs at least 1 micro-batch";
    if (shape->virtual_stages < 1)
        return "a schedule needs at least 1 virtual stage per rank";
    long num_stages = (long)shape->num_ranks * shape->virtual_stages;
    if (num_stages > MAX_STAGES)
        return "a schedule has at most 32767 stages";
    if (shape->num_microbatches * num_stages > MAX_ACTIONS / 2)
        return "a schedule has at most 4194304 actions";
    return shape->kind == MS_INTERLEAVED ? interleaved_objection(shape)
                                         : plain_objection(shape);
}

bool ms_schedule_allows(const ms_schedule_shape *shape, const char **why)
{
    const char *found = objection(shape);
    if (why != NULL)
        *why = found;
    return found == NULL;
}

/* ---- the lists ---- */

/* The k-th forward (or backward) of a rank: groups of g micro-batches, chunk by chunk inside a group.
 * Backwards take the chunks from the last one. Source: Megatron-LM schedules.py, get_schedule_table. */
static ms_action action_at(const ms_schedule_shape *shape, ms_action_kind kind, int rank,
                           int k)
{
    int v = shape->virtual_stages;
    int group = v == 1 ? shape->num_microbatches : ms_schedule_group(shape);
    int group_idx = k / (group * v);
    int first = group_idx * group;
    int size = least(group, shape->num_microbatches - first);
    int inside = k - first * v;
    int chunk = inside / size;
    if (kind == MS_BACKWARD)
        chunk = v - 1 - chunk;
    return (ms_action){.kind = (unsigned char)kind,
                       .stage = (short)(chunk * shape->num_ranks + rank),
                       .microbatch = first + inside % size};
}

/* Forwards before the first pair of a forward and a backward. Source: Megatron-LM schedules.py,
 * get_pp_rank_microbatches; PyTorch schedules.py starts 1F1B's steady state with the backward instead,
 * after one more forward, which is the same sequence. */
static int num_warmup(const ms_schedule_shape *shape, int rank)
{
    int num_forwards = shape->num_microbatches * shape->virtual_stages;
    int behind = shape->num_ranks - 1 - rank;
    switch (shape->kind) {
    case MS_1F1B:
        return least(num_forwards, behind);
    case MS_INTERLEAVED:
        return least(num_forwards,
                     2 * behind + (shape->virtual_stages - 1) * ms_schedule_group(shape));
    case MS_GPIPE:
    case MS_NUM_SCHEDULES:
        break;
    }
    return num_forwards;
}

static void fill_rank(const ms_schedule_shape *shape, int rank, ms_action *out)
{
    int num_forwards = shape->num_microbatches * shape->virtual_stages;
    int warmup = num_warmup(shape, rank);
    for (int k = 0; k < warmup; k++)
        *out++ = action_at(shape, MS_FORWARD, rank, k);
    for (int k = 0; k < num_forwards; k++) {
        if (warmup + k < num_forwards)
            *out++ = action_at(shape, MS_FORWARD, rank, warmup + k);
        *out++ = action_at(shape, MS_BACKWARD, rank, k);
    }
}

/* ---- an order for all ranks together ---- */

/* Every rank's next action, and the step in which each (kind, stage, micro-batch) was done. */
typedef struct sweep {
    const ms_schedule *schedule;
    int *next;      /* (num_ranks) */
    int *step_of;   /* (MS_NUM_ACTIONS, num_stages, num_microbatches); 0: not yet */
    int *last_step; /* (num_ranks) */
    int *last_backward_step; /* (num_stages) */
    bool *stage_started;     /* (num_stages) */
    ms_step *steps;
    int *step_action;
    int num_done;
} sweep;

static int *step_slot(const sweep *s, int kind, int stage, int microbatch)
{
    long m = s->schedule->shape.num_microbatches;
    return &s->step_of[(kind * (long)s->schedule->num_stages + stage) * m + microbatch];
}

/* The step that sends to this action, 0 when nothing does; -1: it has not been taken. */
static int sender_of(const sweep *s, const ms_action *action)
{
    bool is_forward = action->kind == MS_FORWARD;
    int end_stage = is_forward ? 0 : s->schedule->num_stages - 1;
    if (action->stage == end_stage)
        return 0;
    int from = action->stage + (is_forward ? -1 : 1);
    int step = *step_slot(s, action->kind, from, action->microbatch);
    return step == 0 ? -1 : step;
}

static void take_step(sweep *s, int rank, int cross)
{
    const ms_schedule *schedule = s->schedule;
    int action_idx = rank * schedule->actions_per_rank + s->next[rank]++;
    const ms_action *action = &schedule->actions[action_idx];
    int step = ++s->num_done;
    int cost = action->kind == MS_FORWARD ? MS_COST_FORWARD : MS_COST_BACKWARD;
    if (!s->stage_started[action->stage]) {
        s->stage_started[action->stage] = true;
        cost = MS_COST_FIRST_FORWARD;
    }
    s->steps[step] = (ms_step){.before = s->last_step[rank],
                               .cross = cross,
                               .cost = MS_NUM_STEP_COSTS * action->stage + cost};
    s->step_action[step] = action_idx;
    s->last_step[rank] = step;
    *step_slot(s, action->kind, action->stage, action->microbatch) = step;
}

/* Rounds in which every rank takes at most one action whose sender was done in an earlier round, so
 * that neighbours in the order do not wait for each other. False when no rank can go on. */
static bool sweep_all(sweep *s)
{
    const ms_schedule *schedule = s->schedule;
    int total = schedule->shape.num_ranks * schedule->actions_per_rank;
    while (s->num_done < total) {
        int done_before = s->num_done;
        for (int rank = 0; rank < schedule->shape.num_ranks; rank++) {
            if (s->next[rank] == schedule->actions_per_rank)
                continue;
            const ms_action *action =
                &schedule
                     ->actions[(long)rank * schedule->actions_per_rank + s->next[rank]];
            int cross = sender_of(s, action);
            if (cross >= 0 && cross <= done_before)
                take_step(s, rank, cross);
        }
        if (s->num_done == done_before)
            return false;
    }
    return true;
}

/* From the back, the first backward that each stage meets is its last one. */
static void mark_last_backwards(sweep *s)
{
    memset(s->stage_started, 0, (size_t)s->schedule->num_stages * sizeof(bool));
    for (int step = s->num_done; step > 0; step--) {
        int stage = s->steps[step].cost / MS_NUM_STEP_COSTS;
        int cost = s->steps[step].cost % MS_NUM_STEP_COSTS;
        if (cost == MS_COST_BACKWARD && !s->stage_started[stage]) {
            s->stage_started[stage] = true;
            s->last_backward_step[stage] = step;
            s->steps[step].cost += MS_COST_LAST_BACKWARD - MS_COST_BACKWARD;
        }
    }
}

static sweep open_sweep(ms_arena *kept, ms_arena *scratch, const ms_schedule *schedule)
{
    long num_ranks = schedule->shape.num_ranks;
    long total = num_ranks * schedule->actions_per_rank;
    long num_slots =
        (long)MS_NUM_ACTIONS * schedule->num_stages * schedule->shape.num_microbatches;
    return (sweep){
        .schedule = schedule,
        .steps = MS_NEW_ARRAY(kept, total + 1, ms_step),
        .step_action = MS_NEW_ARRAY(kept, total + 1, int),
        .last_step = MS_NEW_ARRAY(kept, num_ranks, int),
        .last_backward_step = MS_NEW_ARRAY(kept, schedule->num_stages, int),
        .next = MS_NEW_ARRAY(scratch, num_ranks, int),
        .step_of = MS_NEW_ARRAY(scratch, num_slots, int),
        .stage_started = MS_NEW_ARRAY(scratch, schedule->num_stages, bool),
    };
}

static void find_steps(ms_arena *arena, ms_arena *scratch, ms_schedule *schedule)
{
    sweep s = open_sweep(arena, scratch, schedule);
    bool complete = sweep_all(&s);
    assert(complete);
    (void)complete;
    mark_last_backwards(&s);
    schedule->num_steps = s.num_done;
    schedule->steps = s.steps;
    schedule->step_action = s.step_action;
    schedule->last_step = s.last_step;
    schedule->last_backward_step = s.last_backward_step;
}

ms_schedule *ms_schedule_make(ms_arena *arena, const ms_schedule_shape *shape)
{
    assert(ms_schedule_allows(shape, NULL));
    ms_schedule *schedule = MS_NEW(arena, ms_schedule);
    schedule->shape = *shape;
    schedule->num_stages = shape->num_ranks * shape->virtual_stages;
    schedule->actions_per_rank = 2 * shape->num_microbatches * shape->virtual_stages;
    long total = (long)shape->num_ranks * schedule->actions_per_rank;
    ms_action *actions = MS_NEW_ARRAY(arena, total, ms_action);
    for (int rank = 0; rank < shape->num_ranks; rank++)
        fill_rank(shape, rank, actions + (long)rank * schedule->actions_per_rank);
    schedule->actions = actions;
    ms_schedule_find_live(arena, schedule);
    ms_arena *scratch = ms_arena_open();
    find_steps(arena, scratch, schedule);
    ms_arena_close(scratch);
    return schedule;
}

/* ---- check ---- */

/* `seen` is (num_stages, num_microbatches): 0 not yet, 1 forward done, 2 backward done. */
static const char *action_objection(const ms_schedule *schedule, int rank,
                                    const ms_action *action, unsigned char *seen)
{
    int p = schedule->shape.num_ranks, m = schedule->shape.num_microbatches;
    if (action->stage < 0 || action->stage >= schedule->num_stages ||
        action->microbatch < 0 || action->microbatch >= m ||
        action->kind >= MS_NUM_ACTIONS)
        return "an action names a stage, micro-batch or kind that does not exist";
    if (action->stage % p != rank)
        return "a stage runs on a rank where it does not live";
    unsigned char *state = &seen[(long)action->stage * m + action->microbatch];
    if (action->kind == MS_FORWARD && *state != 0)
        return "a stage runs a micro-batch forward twice";
    if (action->kind == MS_BACKWARD && *state != 1)
        return "a stage runs a micro-batch backward twice, or before its forward";
    ++*state;
    return NULL;
}

static const char *list_objection(const ms_schedule *schedule, ms_arena *scratch)
{
    long num_pairs = (long)schedule->num_stages * schedule->shape.num_microbatches;
    unsigned char *seen = MS_NEW_ARRAY(scratch, num_pairs, unsigned char);
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++) {
        const ms_action *list =
            schedule->actions + (long)rank * schedule->actions_per_rank;
        for (int i = 0; i < schedule->actions_per_rank; i++) {
            const char *found = action_objection(schedule, rank, &list[i], seen);
            if (found != NULL)
                return found;
        }
    }
    for (long i = 0; i < num_pairs; i++)
        if (seen[i] != 2)
            return "a stage does not run every micro-batch forward and backward";
    sweep s = open_sweep(scratch, scratch, schedule);
    return sweep_all(&s) ? NULL : "the lists deadlock";
}

bool ms_schedule_check(const ms_schedule *schedule, const char **why)
{
    ms_arena *scratch = ms_arena_open();
    const char *found = list_objection(schedule, scratch);
    ms_arena_close(scratch);
    if (why != NULL)
        *why = found;
    return found == NULL;
}
