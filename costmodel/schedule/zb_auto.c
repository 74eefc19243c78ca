/* The schedule ZB-auto: input gradients (I) and weight gradients (W) are placed one at a
 * time under a memory limit, for given durations. Source: Qi et al. 2023, "Zero Bubble
 * Pipeline Parallelism" (arXiv 2401.10241), section 3.1; the greedy construction with
 * three switches is that of sail-sg/zero-bubble-pipeline-parallelism, scheduler/zb.py.
 * The best of the eight is used. One round per micro-batch: every rank from the first one
 * on may run a forward, then every rank from the last one on runs the I of that
 * micro-batch. Weight gradients fill the time in which a rank would wait, and free memory
 * when a forward needs it. */
#include "costmodel/schedule/schedule_priv.h"

#include <math.h>

enum {
    FORWARD,
    INPUT,
    WEIGHT,
    NUM_PARTS
};

typedef struct switches {
    /* a rank's warm-up forwards may delay its first input gradient */
    bool delays_first_backward;
    bool backwards_first; /* a forward waits if it would delay the next rank's backward */
    bool fills_always;    /* weight gradients may delay a forward or input gradient */
} switches;

typedef struct builder {
    int num_ranks, num_microbatches;
    double capacity;     /* memory limit, in activations of a micro-batch */
    double weight_share; /* share of activations kept for weight gradients */
    double head_share;   /* added to weight_share on the last rank */
    double cost[NUM_PARTS], send;
    switches how;
    int (*num_done)[NUM_PARTS]; /* [rank][kind] number of finished actions */
    double *free_at;            /* [rank] time when the rank's last action ends */
    double *idle;               /* [rank] idle time of the rank since its first forward */
    double *end[2];             /* [forward, I] (num_ranks, num_microbatches) end time */
    unsigned char *parts;       /* (num_ranks, actions of a rank) kinds, in order */
} builder;

static bool has_weight(const builder *b, int rank)
{
    return b->num_done[rank][WEIGHT] < b->num_done[rank][INPUT];
}

static double weight_share(const builder *b, int rank)
{
    return b->weight_share + (rank == b->num_ranks - 1 ? b->head_share : 0);
}

/* Memory of a rank's alive micro-batches, in units of one micro-batch's activations. */
static double live_memory(const builder *b, int rank)
{
    const int *num_done = b->num_done[rank];
    return num_done[FORWARD] - num_done[INPUT] +
           weight_share(b, rank) * (num_done[INPUT] - num_done[WEIGHT]);
}

static double end_of(const builder *b, int part, int rank, int microbatch)
{
    return b->end[part][(long)rank * b->num_microbatches + microbatch];
}

/* Time when the previous (part FORWARD) or next rank's output arrives at `rank`. */
static double arrival(const builder *b, int part, int rank)
{
    int from = part == FORWARD ? rank - 1 : rank + 1;
    if (from < 0 || from == b->num_ranks)
        return 0;
    return end_of(b, part, from, b->num_done[rank][part]) + b->send;
}

static void put(builder *b, int rank, int part)
{
    int *num_done = b->num_done[rank];
    int position = num_done[FORWARD] + num_done[INPUT] + num_done[WEIGHT];
    double start = b->free_at[rank];
    if (part != WEIGHT) {
        start = fmax(start, arrival(b, part, rank));
        b->end[part][(long)rank * b->num_microbatches + num_done[part]] =
            start + b->cost[part];
    }
    if (num_done[FORWARD] > 0)
        b->idle[rank] += start - b->free_at[rank];
    b->free_at[rank] = start + b->cost[part];
    b->parts[(long)rank * NUM_PARTS * b->num_microbatches + position] =
        (unsigned char)part;
    num_done[part]++;
}

static double most_idle(const builder *b)
{
    double most = 0;
    for (int rank = 0; rank < b->num_ranks; rank++)
        most = fmax(most, b->idle[rank]);
    return most;
}

/* Places weight gradients before a rank's next forward or input gradient can start. */
static void fill_wait(builder *b, int rank, int part)
{
    double until = arrival(b, part, rank);
    while (has_weight(b, rank) && b->free_at[rank] + b->cost[WEIGHT] <= until)
        put(b, rank, WEIGHT);
    double wait = until - b->free_at[rank];
    if (has_weight(b, rank) && wait > 0 &&
        (b->how.fills_always || wait > most_idle(b) - b->idle[rank]))
        put(b, rank, WEIGHT);
}

/* ---- the first micro-batch ---- */

/* Sets num_more[rank]: forwards after the first until a gradient can arrive. */
static void count_warmup(const builder *b, int *num_more)
{
    int last = b->num_ranks - 1;
    double ready = end_of(b, FORWARD, last, 0) + b->cost[INPUT];
    num_more[last] = 0;
    for (int rank = last - 1; rank >= 0; rank--) {
        double at = b->free_at[rank], until = ready + b->send;
        int count = 0;
        while (1 + count < b->num_microbatches && 2 + count <= b->capacity &&
               (b->how.delays_first_backward ? at < until
                                             : at + b->cost[FORWARD] <= until)) {
            at += b->cost[FORWARD];
            count++;
        }
        num_more[rank] = count;
        ready = fmax(at, until) + b->cost[INPUT];
    }
    /* a rank runs, where possible, fewer warm-up forwards than the previous rank */
    for (int rank = 1; rank < b->num_ranks; rank++)
        while (num_more[rank] > 0 && num_more[rank] >= num_more[rank - 1] &&
               1 + num_more[rank] < b->num_microbatches)
            num_more[rank]--;
}

static void place_first(builder *b, int *num_more)
{
    for (int rank = 0; rank < b->num_ranks; rank++)
        put(b, rank, FORWARD);
    count_warmup(b, num_more);
    for (int rank = 0; rank < b->num_ranks; rank++)
        for (int k = 0; k < num_more[rank]; k++)
            put(b, rank, FORWARD);
    for (int rank = b->num_ranks - 1; rank >= 0; rank--)
        put(b, rank, INPUT);
}

/* ---- the others ---- */

/* Whether a rank can delay its next forward: the next rank has another forward to run,
 * and would end that and a backward before the delayed forward ends. */
static bool can_delay(const builder *b, int rank)
{
    int next = rank + 1;
    if (!b->how.backwards_first || next == b->num_ranks ||
        b->num_done[rank][FORWARD] < b->num_done[next][FORWARD] + 2)
        return false;
    double next_ready = b->free_at[next] + b->cost[FORWARD] + b->cost[INPUT] + b->send;
    double at = b->free_at[rank];
    if (at >= next_ready)
        return true;
    double excess = live_memory(b, rank) + 1 - b->capacity;
    double num_freed = excess > 0 ? ceil(excess / weight_share(b, rank)) : 0;
    double done = at + b->cost[FORWARD] + num_freed * b->cost[WEIGHT];
    if (done <= next_ready)
        return false;
    return next_ready - at <= most_idle(b) - b->idle[rank];
}

static void place_forwards(builder *b, bool *wanted)
{
    for (int rank = 0; rank < b->num_ranks; rank++)
        wanted[rank] =
            b->num_done[rank][FORWARD] < b->num_microbatches && !can_delay(b, rank);
    for (int rank = 0; rank < b->num_ranks; rank++) {
        if (!wanted[rank])
            continue;
        while (live_memory(b, rank) + 1 > b->capacity && has_weight(b, rank))
            put(b, rank, WEIGHT);
        fill_wait(b, rank, FORWARD);
        put(b, rank, FORWARD);
    }
}

static void place_inputs(builder *b)
{
    for (int rank = b->num_ranks - 1; rank >= 0; rank--) {
        fill_wait(b, rank, INPUT);
        /* no rank waits for rank 0's input gradients */
        if (rank == 0 && b->num_done[0][FORWARD] == b->num_microbatches)
            while (has_weight(b, 0))
                put(b, 0, WEIGHT);
        put(b, rank, INPUT);
    }
}

static void build(builder *b, ms_arena *scratch)
{
    ms_arena_mark mark = ms_arena_save(scratch);
    int *num_more = MS_NEW_ARRAY(scratch, b->num_ranks, int);
    bool *wanted = MS_NEW_ARRAY(scratch, b->num_ranks, bool);
    place_first(b, num_more);
    for (int k = 1; k < b->num_microbatches; k++) {
        place_forwards(b, wanted);
        place_inputs(b);
    }
    for (int rank = 0; rank < b->num_ranks; rank++)
        while (has_weight(b, rank))
            put(b, rank, WEIGHT);
    ms_arena_rewind(scratch, mark);
}

/* ---- the best of the eight ---- */

static builder open_builder(const ms_schedule_shape *shape, ms_arena *scratch)
{
    long num_ranks = shape->num_ranks, num_microbatches = shape->num_microbatches;
    ms_schedule_times times = shape->times;
    if (times.forward == 0 && times.backward_input == 0 && times.backward_weight == 0 &&
        times.send == 0)
        times = (ms_schedule_times){1, 1, 1, 0};
    double limit = shape->memory_limit == 0 ? 2 : shape->memory_limit;
    return (builder){
        .num_ranks = shape->num_ranks,
        .num_microbatches = shape->num_microbatches,
        .capacity = limit * (double)num_ranks + 1e-9, /* 1e-9 allows for rounding */
        .weight_share = shape->weight_share == 0 ? 1 : shape->weight_share,
        .head_share = shape->head_share,
        .cost = {times.forward, times.backward_input, times.backward_weight},
        .send = times.send,
        .num_done = (int(*)[NUM_PARTS])MS_NEW_ARRAY(scratch, num_ranks * NUM_PARTS, int),
        .free_at = MS_NEW_ARRAY(scratch, num_ranks, double),
        .idle = MS_NEW_ARRAY(scratch, num_ranks, double),
        .end = {MS_NEW_ARRAY(scratch, num_ranks * num_microbatches, double),
                MS_NEW_ARRAY(scratch, num_ranks * num_microbatches, double)},
        .parts = MS_NEW_ARRAY(scratch, num_ranks * NUM_PARTS * num_microbatches,
                              unsigned char),
    };
}

static void emit(const builder *b, ms_action_list *lists)
{
    static const ms_action_kind kinds[NUM_PARTS] = {MS_FORWARD, MS_BACKWARD_INPUT,
                                                    MS_BACKWARD_WEIGHT};
    const unsigned char *part = b->parts;
    for (int rank = 0; rank < b->num_ranks; rank++) {
        int microbatch[NUM_PARTS] = {0};
        for (int i = 0; i < NUM_PARTS * b->num_microbatches; i++, part++)
            ms_action_add(&lists[rank], kinds[*part], rank, microbatch[*part]++);
    }
}

static void fill(const ms_schedule_shape *shape, ms_arena *scratch, ms_action_list *lists)
{
    builder best = {0};
    double best_idle = INFINITY;
    for (int i = 0; i < 8; i++) {
        builder b = open_builder(shape, scratch);
        b.how = (switches){(i & 4) == 0, (i & 2) == 0, (i & 1) == 0};
        build(&b, scratch);
        double idle = most_idle(&b); /* all eight do equal work: idle time decides */
        if (idle < best_idle) {
            best = b;
            best_idle = idle;
        }
    }
    emit(&best, lists);
}

static bool is_time(double value)
{
    return value >= 0 && isfinite(value);
}

static const char *objection(const ms_schedule_shape *shape)
{
    if (ms_schedule_num_actions(shape) > MS_MOST_PLACED_ACTIONS)
        return "at most 262144 actions are placed one by one; take fewer "
               "micro-batches or pipeline ranks, or zb-h1 or zb-h2";
    const ms_schedule_times *times = &shape->times;
    if (!is_time(times->forward) || !is_time(times->backward_input) ||
        !is_time(times->backward_weight) || !is_time(times->send))
        return "the times that a schedule is built for are 0 or more";
    if (!(shape->memory_limit == 0 || shape->memory_limit * shape->num_ranks >= 1))
        return "the memory limit is less than one micro-batch: 1F1B's peak on rank 0 is p "
               "micro-batches, so it must be at least 1/p";
    if (!(shape->weight_share >= 0 && shape->weight_share <= 1))
        return "the share of activations that weight gradients need is between 0 and 1";
    if (!is_time(shape->head_share))
        return "the share that weight gradients of the head need is no number from 0 on";
    return NULL;
}

const ms_schedule_family ms_family_zb_auto = {
    MS_ALIASES("zb", "zero-bubble", "zb-2p"),
    .traits = {.placement = MS_PLACE_LOOP,
               .least_virtual = 1,
               .most_virtual = 1,
               .splits_backward = true,
               .uses_times = true,
               .limits_memory = true},
    .objection = objection,
    .fill = fill,
};
