/* Checks ranks' action lists: each action once, in order, on its rank, no deadlock. */
#include "costmodel/schedule/schedule_priv.h"

/* Progress of one micro-batch on one stage: forward, then backward. */
enum {
    NOT_YET,
    FORWARD_DONE,
    INPUT_DONE,
    ALL_DONE
};

typedef struct checker {
    ms_ctx *cx;
    const ms_schedule *schedule;
    ms_loc loc;
    int num_microbatches;
    unsigned char *state; /* (num_stages, num_microbatches): progress */
} checker;

char *ms_action_text(ms_arena *arena, const ms_action *a)
{
    static const char letters[] = "FBIW";
    if (a->kind == MS_OVERLAP)
        return ms_arena_printf(arena, "(%dF%d;%dB%d)OVERLAP_F_B", a->stage, a->microbatch,
                               a->backward_stage, a->backward_microbatch);
    return ms_arena_printf(arena, "%d%c%d", a->stage, letters[a->kind], a->microbatch);
}

static ms_loc place_of(const checker *c, const ms_action *a)
{
    const ms_schedule_table *table = c->schedule->shape.table;
    ms_loc loc = c->loc;
    if (table != NULL && table->places != NULL) {
        const ms_action_place *place = &table->places[a - c->schedule->actions];
        loc.line = place->line;
        loc.column = place->column;
    }
    return loc;
}

static ms_status fail_action(const checker *c, int rank, const ms_action *a,
                             const char *what)
{
    return ms_fail(c->cx, MS_EINPUT, place_of(c, a), "rank %d: %s: %s", rank,
                   ms_action_text(c->cx->arena, a), what);
}

/* Notes that `stage` runs `kind` (a pair: two calls); returns what is wrong, or NULL. */
static const char *advance(const checker *c, int rank, int kind, int stage,
                           int microbatch)
{
    const ms_schedule *schedule = c->schedule;
    if (stage < 0 || stage >= schedule->num_stages)
        return "there is no such stage";
    if (microbatch < 0 || microbatch >= c->num_microbatches)
        return "there is no such micro-batch";
    if (ms_schedule_rank(&schedule->shape, stage) != rank)
        return "the stage does not live on this rank";
    unsigned char *state = &c->state[(long)stage * c->num_microbatches + microbatch];
    unsigned char before = *state;
    if (kind == MS_FORWARD) {
        *state = FORWARD_DONE;
        return before == NOT_YET ? NULL : "the stage runs this micro-batch forward twice";
    }
    if (kind == MS_BACKWARD_WEIGHT) {
        *state = ALL_DONE;
        return before == INPUT_DONE ? NULL
               : before == ALL_DONE ? "the weights' gradients were computed before"
                                    : "the weights' gradients come after the inputs'";
    }
    *state = kind == MS_BACKWARD ? ALL_DONE : INPUT_DONE;
    return before == FORWARD_DONE ? NULL
           : before == NOT_YET    ? "the backward comes before its forward"
                                  : "the stage runs this micro-batch backward twice";
}

static ms_status check_action(const checker *c, int rank, const ms_action *a)
{
    const char *found = NULL;
    if (a->kind >= MS_NUM_ACTIONS)
        return ms_fail(c->cx, MS_EINPUT, c->loc, "rank %d: unknown kind of action", rank);
    if (a->kind == MS_OVERLAP) {
        found = advance(c, rank, MS_FORWARD, a->stage, a->microbatch);
        if (found == NULL)
            found =
                advance(c, rank, MS_BACKWARD, a->backward_stage, a->backward_microbatch);
    } else {
        found = advance(c, rank, a->kind, a->stage, a->microbatch);
    }
    return found == NULL ? MS_OK : fail_action(c, rank, a, found);
}

static ms_status check_complete(const checker *c)
{
    static const char *const missing[] = {"forward", "backward", "weight gradients"};
    for (int stage = 0; stage < c->schedule->num_stages; stage++) {
        for (int m = 0; m < c->num_microbatches; m++) {
            int state = c->state[(long)stage * c->num_microbatches + m];
            if (state == ALL_DONE)
                continue;
            return ms_fail(c->cx, MS_EINPUT, c->loc,
                           "stage %d never runs the %s of micro-batch %d", stage,
                           missing[state], m);
        }
    }
    return MS_OK;
}

/* ---- deadlock ---- */

/* Stage whose result `a` awaits (of a pair: its forward, or of_gradient); -1: none. */
static int awaited_stage(const checker *c, const ms_action *a, bool of_gradient)
{
    const ms_schedule_shape *shape = &c->schedule->shape;
    bool forward = a->kind == MS_FORWARD || (a->kind == MS_OVERLAP && !of_gradient);
    int stage = a->kind == MS_OVERLAP && of_gradient ? a->backward_stage : a->stage;
    int model_stage = ms_schedule_model_stage(shape, stage);
    if (a->kind == MS_BACKWARD_WEIGHT || (a->kind != MS_OVERLAP && of_gradient))
        return -1;
    if (forward)
        return model_stage == 0 ? -1 : stage - 1;
    return model_stage == ms_schedule_model_stages(shape) - 1 ? -1 : stage + 1;
}

static bool provides(const ms_action *a, int stage, int microbatch, bool forward)
{
    bool pair = a->kind == MS_OVERLAP;
    if (forward)
        return (pair || a->kind == MS_FORWARD) && a->stage == stage &&
               a->microbatch == microbatch;
    if (pair)
        return a->backward_stage == stage && a->backward_microbatch == microbatch;
    return (a->kind == MS_BACKWARD || a->kind == MS_BACKWARD_INPUT) &&
           a->stage == stage && a->microbatch == microbatch;
}

/* Index of the action whose result a stopped rank awaits. */
static int awaited(const checker *c, const int *stuck, int rank)
{
    const ms_schedule *schedule = c->schedule;
    const ms_action *a = &schedule->actions[stuck[rank]];
    for (int half = 0; half < 2; half++) {
        int stage = awaited_stage(c, a, half == 1);
        if (stage < 0)
            continue;
        bool pair = a->kind == MS_OVERLAP;
        bool forward = half == 0 && (a->kind == MS_FORWARD || pair);
        int microbatch = pair && !forward ? a->backward_microbatch : a->microbatch;
        int other = ms_schedule_rank(&schedule->shape, stage);
        int end = schedule->first_action[other + 1];
        for (int i = stuck[other] < 0 ? end : stuck[other]; i < end; i++)
            if (provides(&schedule->actions[i], stage, microbatch, forward))
                return i;
    }
    return stuck[rank]; /* not reached: a stopped rank awaits something */
}

static int rank_of(const ms_schedule *schedule, int action)
{
    return ms_schedule_rank(&schedule->shape, schedule->actions[action].stage);
}

static int rank_awaited(const checker *c, const int *stuck, int rank)
{
    return rank_of(c->schedule, awaited(c, stuck, rank));
}

/* The lowest rank of a cycle of ranks that wait for each other. */
static int find_cycle(const checker *c, const int *stuck)
{
    int num_ranks = c->schedule->shape.num_ranks, rank = 0;
    while (stuck[rank] < 0)
        rank++;
    for (int i = 0; i < num_ranks; i++) /* after this loop `rank` is on the cycle */
        rank = rank_awaited(c, stuck, rank);
    int lowest = rank;
    for (int at = rank_awaited(c, stuck, rank); at != rank;
         at = rank_awaited(c, stuck, at))
        lowest = at < lowest ? at : lowest;
    return lowest;
}

/* Reports the cycle of waiting ranks at its first action that never runs. */
static ms_status fail_deadlock(const checker *c, const int *stuck)
{
    const ms_schedule *schedule = c->schedule;
    ms_arena *arena = c->cx->arena;
    int first = find_cycle(c, stuck), rank = first;
    const char *text = "";
    do {
        int next = awaited(c, stuck, rank), other = rank_of(schedule, next);
        text = ms_arena_printf(arena, "%s%srank %d at %s waits for %s of rank %d", text,
                               text[0] == '\0' ? "" : ", ", rank,
                               ms_action_text(arena, &schedule->actions[stuck[rank]]),
                               ms_action_text(arena, &schedule->actions[next]), other);
        rank = other;
    } while (rank != first);
    ms_status status =
        ms_fail(c->cx, MS_EINPUT, place_of(c, &schedule->actions[stuck[first]]),
                "the schedule deadlocks: %s", text);
    ms_hint(c->cx, "an action must come after those that it receives from, on all ranks "
                   "together");
    return status;
}

static ms_status check_lists(checker *c, ms_arena *scratch)
{
    const ms_schedule *schedule = c->schedule;
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++)
        for (int i = schedule->first_action[rank]; i < schedule->first_action[rank + 1];
             i++)
            MS_TRY(check_action(c, rank, &schedule->actions[i]));
    MS_TRY(check_complete(c));
    int *stuck = MS_NEW_ARRAY(scratch, schedule->shape.num_ranks, int);
    ms_schedule copy = *schedule;
    if (ms_schedule_find_slots(scratch, &copy, stuck))
        return MS_OK;
    return fail_deadlock(c, stuck);
}

ms_status ms_schedule_check(ms_ctx *cx, const ms_schedule *schedule, ms_loc loc)
{
    ms_arena *scratch = ms_arena_open();
    checker c = {.cx = cx, .schedule = schedule, .loc = loc};
    c.num_microbatches = ms_schedule_stage_microbatches(&schedule->shape);
    long num_pairs = (long)schedule->num_stages * c.num_microbatches;
    c.state = MS_NEW_ARRAY(scratch, num_pairs, unsigned char);
    ms_status status = check_lists(&c, scratch);
    ms_arena_close(scratch);
    return status;
}
