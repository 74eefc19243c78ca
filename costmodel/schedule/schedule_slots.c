/* Slots of a schedule: all ranks' actions in one order, each after its inputs. */
#include "costmodel/schedule/schedule_priv.h"

#include <string.h>

/* Each rank's next action, and the slots that make activations and gradients. */
typedef struct sweep {
    ms_schedule *schedule;
    int num_microbatches, model_stages; /* micro-batches per stage; stages of the model */
    const short *rank_of;               /* (num_stages) rank of each stage */
    const short *model_stage_of;        /* (num_stages) model stage of each stage */
    int *next;            /* (num_ranks): index of each rank's next action */
    int *last_slot;       /* (num_ranks): latest slot of each rank */
    int *activation_slot; /* (num_stages, num_microbatches): slot that made it; 0: none */
    int *gradient_slot;   /* (num_stages, num_microbatches): slot that made it; 0: none */
    bool *stage_started;  /* (num_stages) whether a forward has a slot */
    ms_slot *slots;
    int *slot_action;
    ms_slot_cost *costs; /* [slot] cost class */
    int num_done;        /* number of slots given to actions */
    int num_left;        /* number of actions without a slot */
} sweep;

static int *entry(const sweep *s, int *table, int stage, int microbatch)
{
    return &table[(long)stage * s->num_microbatches + microbatch];
}

/* Slot of stage `from` that `stage` receives from; 0: one rank; -1: not made yet. */
static int received(const sweep *s, int *table, int stage, int from, int microbatch)
{
    int slot = *entry(s, table, from, microbatch);
    if (slot == 0)
        return -1;
    return s->rank_of[from] == s->rank_of[stage] ? 0 : slot;
}

static int activation_of(const sweep *s, int stage, int microbatch)
{
    if (s->model_stage_of[stage] == 0)
        return 0;
    return received(s, s->activation_slot, stage, stage - 1, microbatch);
}

static int gradient_of(const sweep *s, int stage, int microbatch)
{
    if (s->model_stage_of[stage] == s->model_stages - 1)
        return 0;
    return received(s, s->gradient_slot, stage, stage + 1, microbatch);
}

static bool makes_weights(const ms_slot_cost *cost)
{
    return cost->kind == MS_SLOT_BACKWARD || cost->kind == MS_SLOT_WEIGHT ||
           cost->kind == MS_SLOT_PAIR_REST;
}

static int add_slot(sweep *s, int rank, int cross, int cross2, ms_slot_cost cost)
{
    int slot = ++s->num_done, before = s->last_slot[rank];
    if (cost.kind == MS_SLOT_BACKWARD || cost.kind == MS_SLOT_INPUT)
        cost.after_backward = before != 0 && makes_weights(&s->costs[before]);
    s->slots[slot] = (ms_slot){.before = before, .cross = cross, .cross2 = cross2};
    s->slot_action[slot] = s->next[rank];
    s->costs[slot] = cost;
    s->last_slot[rank] = slot;
    return slot;
}

static bool starts_stage(sweep *s, int stage)
{
    bool starts = !s->stage_started[stage];
    s->stage_started[stage] = true;
    return starts;
}

/* Gives a pair two slots: forward, rest. early_release: each waits for its own input. */
static void take_pair(sweep *s, int rank, const ms_action *a, int cross, int cross2)
{
    bool early = s->schedule->shape.early_release;
    ms_slot_cost cost = {.kind = MS_SLOT_PAIR_FORWARD,
                         .first_forward = starts_stage(s, a->stage),
                         .stage = a->stage,
                         .backward_stage = a->backward_stage};
    int half = add_slot(s, rank, cross, early ? 0 : cross2, cost);
    cost.kind = MS_SLOT_PAIR_REST;
    cost.first_forward = false;
    int end = add_slot(s, rank, 0, early ? cross2 : 0, cost);
    *entry(s, s->activation_slot, a->stage, a->microbatch) = early ? half : end;
    *entry(s, s->gradient_slot, a->backward_stage, a->backward_microbatch) = end;
}

static void take_action(sweep *s, int rank, const ms_action *a, int cross, int cross2)
{
    static const unsigned char slot_kinds[MS_NUM_ACTIONS] = {
        [MS_FORWARD] = MS_SLOT_FORWARD,
        [MS_BACKWARD] = MS_SLOT_BACKWARD,
        [MS_BACKWARD_INPUT] = MS_SLOT_INPUT,
        [MS_BACKWARD_WEIGHT] = MS_SLOT_WEIGHT};
    if (a->kind == MS_OVERLAP) {
        take_pair(s, rank, a, cross, cross2);
        return;
    }
    ms_slot_cost cost = {.kind = slot_kinds[a->kind],
                         .first_forward =
                             a->kind == MS_FORWARD && starts_stage(s, a->stage),
                         .stage = a->stage};
    int slot = add_slot(s, rank, cross, 0, cost);
    if (a->kind == MS_FORWARD)
        *entry(s, s->activation_slot, a->stage, a->microbatch) = slot;
    else if (a->kind != MS_BACKWARD_WEIGHT)
        *entry(s, s->gradient_slot, a->stage, a->microbatch) = slot;
}

/* Gives a rank's next action a slot if its inputs have slots of at most `done_before`. */
static bool try_action(sweep *s, int rank, int done_before)
{
    const ms_action *a = &s->schedule->actions[s->next[rank]];
    int cross = 0, cross2 = 0;
    if (a->kind == MS_FORWARD || a->kind == MS_OVERLAP)
        cross = activation_of(s, a->stage, a->microbatch);
    if (a->kind == MS_BACKWARD || a->kind == MS_BACKWARD_INPUT)
        cross = gradient_of(s, a->stage, a->microbatch);
    if (a->kind == MS_OVERLAP)
        cross2 = gradient_of(s, a->backward_stage, a->backward_microbatch);
    if (cross < 0 || cross2 < 0 || cross > done_before || cross2 > done_before)
        return false;
    take_action(s, rank, a, cross, cross2);
    s->next[rank]++;
    s->num_left--;
    return true;
}

/* Gives all actions slots. A round takes each rank's next action if earlier rounds made
 * its inputs, so that neighbouring slots rarely wait for each other. Returns false on a
 * deadlock. */
static bool sweep_all(sweep *s)
{
    const ms_schedule *schedule = s->schedule;
    while (s->num_left > 0) {
        int done_before = s->num_done, left_before = s->num_left;
        for (int rank = 0; rank < schedule->shape.num_ranks; rank++)
            if (s->next[rank] < schedule->first_action[rank + 1])
                try_action(s, rank, done_before);
        if (s->num_left == left_before)
            return false;
    }
    return true;
}

/* ---- costs ---- */

static void mark_last_backwards(sweep *s, int *last_backward_slot)
{
    for (int slot = s->num_done; slot > 0; slot--) {
        ms_slot_cost *cost = &s->costs[slot];
        int stage = cost->kind == MS_SLOT_PAIR_REST ? cost->backward_stage : cost->stage;
        if (makes_weights(cost) && last_backward_slot[stage] == 0) {
            last_backward_slot[stage] = slot;
            cost->last_backward = true;
        }
    }
}

int ms_schedule_last_complete(const ms_schedule *schedule, int rank)
{
    int last = ms_schedule_stage(&schedule->shape, rank, 0);
    for (int chunk = 1; chunk < schedule->num_chunks; chunk++) {
        int stage = ms_schedule_stage(&schedule->shape, rank, chunk);
        if (schedule->last_backward_slot[stage] > schedule->last_backward_slot[last])
            last = stage;
    }
    return last;
}

/* Index of a cost class in class_of[stage][0, or 1 + backward's chunk][kind][flags]. */
static long class_index(const sweep *s, const ms_slot_cost *cost)
{
    const ms_schedule *schedule = s->schedule;
    bool pair = cost->kind >= MS_SLOT_PAIR_FORWARD;
    long other = pair ? 1 + ms_schedule_chunk(&schedule->shape, cost->backward_stage) : 0;
    long which = (cost->stage * (1L + schedule->num_chunks) + other) * 6 + cost->kind;
    return which * 8 + 4 * cost->after_backward + 2 * cost->first_forward +
           cost->last_backward;
}

/* Notes the last backward that came just before a slot that needs parameters, or whose
 * reductions are waited for. */
static void note_last_before(const sweep *s, int slot)
{
    ms_slot_cost *cost = &s->costs[slot];
    const ms_slot_cost *before = &s->costs[s->slots[slot].before];
    bool last_weight = cost->kind == MS_SLOT_WEIGHT && cost->last_backward;
    if (s->slots[slot].before == 0 || !before->last_backward || last_weight ||
        cost->kind == MS_SLOT_PAIR_REST)
        return;
    bool pair = before->kind == MS_SLOT_PAIR_REST;
    cost->after_last = (short)(1 + (pair ? before->backward_stage : before->stage));
    cost->after_last_weight = before->kind == MS_SLOT_WEIGHT;
}

static void class_costs(sweep *s, ms_arena *arena, ms_arena *scratch)
{
    ms_schedule *schedule = s->schedule;
    long num_entries = schedule->num_stages * (1L + schedule->num_chunks) * 48;
    int *class_of = MS_NEW_ARRAY(scratch, num_entries, int); /* 1 + cost class; 0: none */
    ms_slot_cost *classes = MS_NEW_ARRAY(scratch, s->num_done + 1, ms_slot_cost);
    int num = 0;
    for (int slot = 1; slot <= s->num_done; slot++) {
        int own = 0; /* slots after a last backward are few: each is a class */
        note_last_before(s, slot);
        int *known = s->costs[slot].after_last != 0
                         ? &own
                         : &class_of[class_index(s, &s->costs[slot])];
        if (*known == 0) {
            classes[num] = s->costs[slot];
            *known = ++num;
        }
        s->slots[slot].cost = *known - 1;
        classes[*known - 1].receives |= s->slots[slot].cross != 0;
        classes[*known - 1].receives2 |= s->slots[slot].cross2 != 0;
    }
    ms_slot_cost *kept = MS_NEW_ARRAY(arena, num, ms_slot_cost);
    memcpy(kept, classes, (size_t)num * sizeof *kept);
    schedule->slot_costs = kept;
    schedule->num_slot_costs = num;
}

/* ---- all ---- */

static int count_slots(const ms_schedule *schedule)
{
    int num = schedule->first_action[schedule->shape.num_ranks], pairs = 0;
    for (int i = 0; i < num; i++)
        pairs += schedule->actions[i].kind == MS_OVERLAP;
    return num + pairs;
}

static void place_stages(sweep *s, ms_arena *scratch)
{
    const ms_schedule *schedule = s->schedule;
    short *rank_of = MS_NEW_ARRAY(scratch, schedule->num_stages, short);
    short *model_stage_of = MS_NEW_ARRAY(scratch, schedule->num_stages, short);
    for (int stage = 0; stage < schedule->num_stages; stage++) {
        rank_of[stage] = (short)ms_schedule_rank(&schedule->shape, stage);
        model_stage_of[stage] = (short)ms_schedule_model_stage(&schedule->shape, stage);
    }
    s->rank_of = rank_of;
    s->model_stage_of = model_stage_of;
}

static sweep open_sweep(ms_arena *arena, ms_arena *scratch, ms_schedule *schedule)
{
    const ms_schedule_shape *shape = &schedule->shape;
    int num_slots = count_slots(schedule), microbatches = shape->num_microbatches;
    long num_entries = (long)schedule->num_stages * microbatches;
    sweep s = {.schedule = schedule,
               .num_microbatches = microbatches,
               .model_stages = ms_schedule_model_stages(shape),
               .next = MS_NEW_ARRAY(scratch, shape->num_ranks, int),
               .last_slot = MS_NEW_ARRAY(arena, shape->num_ranks, int),
               .activation_slot = MS_NEW_ARRAY(scratch, num_entries, int),
               .gradient_slot = MS_NEW_ARRAY(scratch, num_entries, int),
               .stage_started = MS_NEW_ARRAY(scratch, schedule->num_stages, bool),
               .slots = MS_NEW_ARRAY(arena, num_slots + 1, ms_slot),
               .slot_action = MS_NEW_ARRAY(arena, num_slots + 1, int),
               .costs = MS_NEW_ARRAY(scratch, num_slots + 1, ms_slot_cost),
               .num_left = schedule->first_action[shape->num_ranks]};
    place_stages(&s, scratch);
    for (int rank = 0; rank < shape->num_ranks; rank++)
        s.next[rank] = schedule->first_action[rank];
    return s;
}

static void find_stuck(const sweep *s, int *stuck)
{
    const ms_schedule *schedule = s->schedule;
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++)
        stuck[rank] =
            s->next[rank] < schedule->first_action[rank + 1] ? s->next[rank] : -1;
}

bool ms_schedule_find_slots(ms_arena *arena, ms_schedule *schedule, int *stuck)
{
    ms_arena *scratch = ms_arena_open();
    sweep s = open_sweep(arena, scratch, schedule);
    bool complete = sweep_all(&s);
    if (stuck != NULL)
        find_stuck(&s, stuck);
    if (complete) {
        int *last_backward_slot = MS_NEW_ARRAY(arena, schedule->num_stages, int);
        mark_last_backwards(&s, last_backward_slot);
        class_costs(&s, arena, scratch);
        schedule->num_slots = s.num_done;
        schedule->slots = s.slots;
        schedule->slot_action = s.slot_action;
        schedule->last_slot = s.last_slot;
        schedule->last_backward_slot = last_backward_slot;
    }
    ms_arena_close(scratch);
    return complete;
}
