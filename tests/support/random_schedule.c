#include "tests/support/random_schedule.h"

/* Which passes of a micro-batch a stage has done. */
typedef enum progress {
    NOTHING,
    FORWARD_DONE,
    INPUT_DONE, /* input gradient is done, weight gradients are not */
    ALL_DONE
} progress;

typedef struct draw {
    ms_arena *arena;
    ms_rng *rng;
    int num_ranks, num_stages, num_microbatches;
    int *rank_of_stage;
    unsigned char *done; /* progress, (stages, micro-batches) */
    ms_action *ready;    /* actions that the current rank could do next */
    int num_ready;
} draw;

static unsigned char *done_of(const draw *d, int stage, int microbatch)
{
    return &d->done[stage * d->num_microbatches + microbatch];
}

static void place_stages(draw *d)
{
    d->rank_of_stage = MS_NEW_ARRAY(d->arena, d->num_stages, int);
    for (int i = 0; i < d->num_stages; i++)
        d->rank_of_stage[i] = i % d->num_ranks;
    for (int i = d->num_stages - 1; i > 0; i--) {
        int other = (int)ms_rng_below(d->rng, (uint64_t)i + 1);
        int rank = d->rank_of_stage[i];
        d->rank_of_stage[i] = d->rank_of_stage[other];
        d->rank_of_stage[other] = rank;
    }
}

static void add(draw *d, ms_action_kind kind, int stage, int microbatch)
{
    d->ready[d->num_ready++] = (ms_action){
        .kind = (unsigned char)kind, .stage = (short)stage, .microbatch = microbatch};
}

static void add_ready(draw *d, int stage, int microbatch)
{
    int last = d->num_stages - 1;
    unsigned char now = *done_of(d, stage, microbatch);
    if (now == NOTHING &&
        (stage == 0 || *done_of(d, stage - 1, microbatch) >= FORWARD_DONE))
        add(d, MS_FORWARD, stage, microbatch);
    if (now == FORWARD_DONE &&
        (stage == last || *done_of(d, stage + 1, microbatch) >= INPUT_DONE))
        add(d, ms_rng_below(d->rng, 2) == 0 ? MS_BACKWARD : MS_BACKWARD_INPUT, stage,
            microbatch);
    if (now == INPUT_DONE)
        add(d, MS_BACKWARD_WEIGHT, stage, microbatch);
}

static void find_ready(draw *d, int rank)
{
    d->num_ready = 0;
    for (int stage = 0; stage < d->num_stages; stage++)
        for (int i = 0; d->rank_of_stage[stage] == rank && i < d->num_microbatches; i++)
            add_ready(d, stage, i);
}

/* Merges a drawn forward with a whole backward into one overlapped pair, if the second
 * drawn action is one. */
static ms_action with_partner(const draw *d, ms_action action)
{
    const ms_action *b = &d->ready[ms_rng_below(d->rng, (uint64_t)d->num_ready)];
    if (action.kind != MS_FORWARD || b->kind != MS_BACKWARD)
        return action;
    action.kind = MS_OVERLAP;
    action.backward_stage = b->stage;
    action.backward_microbatch = b->microbatch;
    return action;
}

static void note_done(const draw *d, const ms_action *a)
{
    static const unsigned char after[] = {[MS_FORWARD] = FORWARD_DONE,
                                          [MS_BACKWARD] = ALL_DONE,
                                          [MS_BACKWARD_INPUT] = INPUT_DONE,
                                          [MS_BACKWARD_WEIGHT] = ALL_DONE,
                                          [MS_OVERLAP] = FORWARD_DONE};
    *done_of(d, a->stage, a->microbatch) = after[a->kind];
    if (a->kind == MS_OVERLAP)
        *done_of(d, a->backward_stage, a->backward_microbatch) = ALL_DONE;
}

static bool all_done(const draw *d)
{
    for (int i = 0; i < d->num_stages * d->num_microbatches; i++)
        if (d->done[i] != ALL_DONE)
            return false;
    return true;
}

const char *ms_random_schedule(ms_arena *arena, ms_rng *rng, int num_ranks, int chunks,
                               int num_microbatches)
{
    draw d = {arena, rng, num_ranks, num_ranks * chunks, num_microbatches, 0, 0, 0, 0};
    int num = d.num_stages * num_microbatches;
    const char **rows = MS_NEW_ARRAY(arena, num_ranks, const char *);
    const char *text = "";
    d.done = MS_NEW_ARRAY(arena, num, unsigned char);
    d.ready = MS_NEW_ARRAY(arena, num, ms_action);
    place_stages(&d);
    while (!all_done(&d)) {
        int rank = (int)ms_rng_below(rng, (uint64_t)num_ranks);
        find_ready(&d, rank);
        if (d.num_ready == 0)
            continue;
        ms_action action =
            with_partner(&d, d.ready[ms_rng_below(rng, (uint64_t)d.num_ready)]);
        note_done(&d, &action);
        const char *cell = ms_action_text(arena, &action);
        rows[rank] =
            rows[rank] == NULL ? cell : ms_arena_printf(arena, "%s,%s", rows[rank], cell);
    }
    for (int rank = 0; rank < num_ranks; rank++)
        text = ms_arena_printf(arena, "%s%s\n", text, rows[rank]);
    return text;
}
