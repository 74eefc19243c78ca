/* V-Half and V-Min: stages r and 2p-1-r on rank r, with a half and about a third of
 * 1F1B's activations. Every micro-batch repeats one pattern, 6 slots of one action after
 * the one before it; then actions move into idle slots at the start and at the end as far
 * as the peak of memory allows. Source: Qi et al. 2024, "Pipeline Parallelism with
 * Controllable Memory" (arXiv 2405.15362), sections 3 and 4;
 * sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv_greedy.py. All actions are
 * taken as equally long: the order does not depend on times. */
#include "costmodel/schedule/schedule_priv.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define PERIOD 6

typedef enum part {
    FORWARD_0, /* of the chunk that a micro-batch meets first */
    FORWARD_1,
    INPUT_1,
    INPUT_0,
    WEIGHT_1,
    WEIGHT_0,
    NUM_PARTS,
    NO_PART = NUM_PARTS
} part;

typedef struct rank_slots {
    /* micro-batch 0's slot of each part; micro-batch k's is PERIOD k later */
    int of[NUM_PARTS];
    int next[NUM_PARTS];  /* micro-batch that the part runs next */
    int kept;             /* chunks in memory now */
    unsigned char *parts; /* (num_slots); NO_PART: idle */
    /* (num_slots): chunks in memory during the slot, of what is placed ahead */
    int *held;
    int last_ahead; /* slot of its last forward or input placed ahead; -1 */
} rank_slots;

typedef struct builder {
    int num_ranks, num_microbatches;
    int capacity;  /* chunks in memory: the pattern's own peak */
    int num_slots; /* most slots; a list that needs more is given up */
    bool reorders;
    rank_slots *ranks;
    /* (num_ranks, num_microbatches): slot after the part; 0: not placed */
    int *end[INPUT_0 + 1];
} builder;

/* ---- the pattern ---- */

static int modulo(int a)
{
    return ((a % PERIOD) + PERIOD) % PERIOD;
}

/* The first slot from `from` on that is `rest` modulo the period. */
static int next_slot(int from, int rest)
{
    return from + modulo(rest - from);
}

/* Relative to a rank's first forward the inputs of chunk 1 are in slot 2, their weights
 * in 3, the weights of chunk 0 in 5; the others come two slots a rank down and one a rank
 * up, which leaves them 1 and 4. Source: arXiv 2405.15362, V-Half. */
static void half_pattern(int num_ranks, int rank, int *of)
{
    int behind = num_ranks - 1 - rank;
    int turn = next_slot(3 * num_ranks - 1, 2); /* the input of chunk 1 on rank 0 */
    of[FORWARD_0] = 2 * rank;
    of[FORWARD_1] = 2 * (num_ranks - 1) + 1 + behind;
    of[INPUT_1] = turn + 2 * rank;
    of[INPUT_0] = turn + 2 * (num_ranks - 1) + 2 + behind;
    of[WEIGHT_1] = of[INPUT_1] + 1;
    of[WEIGHT_0] = next_slot(of[INPUT_0] + 1, of[FORWARD_0] + 5);
}

/* Everything moves on by one slot a rank; weights take the first slots that are left.
 * Source: arXiv 2405.15362, V-Min. */
static void least_pattern(int num_ranks, int rank, int *of)
{
    int behind = num_ranks - 1 - rank;
    int turn = next_slot(2 * num_ranks, 2);
    of[FORWARD_0] = rank;
    of[FORWARD_1] = num_ranks + behind;
    of[INPUT_1] = turn + rank;
    of[INPUT_0] = turn + num_ranks + behind;
    bool taken[PERIOD] = {false};
    for (int i = FORWARD_0; i <= INPUT_0; i++) {
        assert(!taken[modulo(of[i])]);
        taken[modulo(of[i])] = true;
    }
    for (int i = WEIGHT_1; i <= WEIGHT_0; i++) {
        int slot = of[i == WEIGHT_1 ? INPUT_1 : INPUT_0] + 1;
        while (taken[modulo(slot)])
            slot++;
        taken[modulo(slot)] = true;
        of[i] = slot;
    }
}

/* ---- what waits for what ---- */

static bool is_forward(part what)
{
    return what == FORWARD_0 || what == FORWARD_1;
}

static bool is_weight(part what)
{
    return what == WEIGHT_0 || what == WEIGHT_1;
}

static int pattern_slot(const rank_slots *rank, part what)
{
    return rank->of[what] + PERIOD * rank->next[what];
}

static int end_of(const builder *b, part what, int rank, int microbatch)
{
    int end = b->end[what][(long)rank * b->num_microbatches + microbatch];
    return end == 0 ? INT_MAX : end;
}

static int later(int a, int b)
{
    return a > b ? a : b;
}

/* The slot from which on the rank's next part of this kind can run; INT_MAX: not known
 * yet. */
static int ready_slot(const builder *b, int rank, part what)
{
    int microbatch = b->ranks[rank].next[what], last = b->num_ranks - 1;
    switch (what) {
    case FORWARD_0:
        return rank == 0 ? 0 : end_of(b, FORWARD_0, rank - 1, microbatch);
    case FORWARD_1:
        return rank == last ? end_of(b, FORWARD_0, rank, microbatch)
                            : end_of(b, FORWARD_1, rank + 1, microbatch);
    case INPUT_1: {
        int own = end_of(b, FORWARD_1, rank, microbatch);
        return rank == 0 ? own : later(own, end_of(b, INPUT_1, rank - 1, microbatch));
    }
    case INPUT_0: /* comes after its forward, which chunk 1 waited for */
        return rank == last ? end_of(b, INPUT_1, rank, microbatch)
                            : end_of(b, INPUT_0, rank + 1, microbatch);
    case WEIGHT_1:
        return end_of(b, INPUT_1, rank, microbatch);
    case WEIGHT_0:
        return end_of(b, INPUT_0, rank, microbatch);
    case NUM_PARTS:
        break;
    }
    return INT_MAX;
}

static void place(builder *b, int rank, part what, int slot)
{
    rank_slots *slots = &b->ranks[rank];
    slots->parts[slot] = (unsigned char)what;
    int microbatch = slots->next[what]++;
    if (!is_weight(what))
        b->end[what][(long)rank * b->num_microbatches + microbatch] = slot + 1;
}

/* ---- the start: what the pattern runs before rank 0's first input of chunk 0 is placed
 * as early as it can be ---- */

static void place_ahead(builder *b, int rank, part what, int num_ahead)
{
    rank_slots *slots = &b->ranks[rank];
    int slot = ready_slot(b, rank, what);
    if (is_forward(what))
        for (int i = num_ahead - 1; i >= slot; i--)
            if (slots->held[i] >= b->capacity)
                slot = i + 1;
    while (slots->parts[slot] != NO_PART)
        slot++;
    if (is_forward(what))
        for (int i = slot; i < num_ahead; i++)
            slots->held[i]++;
    if (is_weight(what))
        for (int i = slot + 1; i < num_ahead; i++)
            slots->held[i]--;
    else
        slots->last_ahead = later(slots->last_ahead, slot);
    place(b, rank, what, slot);
}

static void place_start(builder *b, int num_ahead)
{
    for (int slot = 0; slot < num_ahead; slot++) {
        for (int rank = 0; rank < b->num_ranks; rank++) {
            for (int i = 0; i < NUM_PARTS; i++) {
                const rank_slots *slots = &b->ranks[rank];
                if (slots->next[i] < b->num_microbatches &&
                    pattern_slot(slots, (part)i) == slot)
                    place_ahead(b, rank, (part)i, num_ahead);
            }
        }
    }
}

/* ---- slot by slot ---- */

/* Of the parts from `from` to `to` that wait, the first one of the pattern that can run
 * in this slot (or that comes next, ready or not). */
static part first_part(const builder *b, int rank, part from, part to, int ready_at)
{
    const rank_slots *slots = &b->ranks[rank];
    part found = NO_PART;
    for (part i = from; i <= to; i++)
        if (slots->next[i] < b->num_microbatches && ready_slot(b, rank, i) <= ready_at &&
            (found == NO_PART || pattern_slot(slots, i) < pattern_slot(slots, found)))
            found = i;
    return found;
}

static bool fits(const builder *b, int rank, part what)
{
    return !is_forward(what) || b->ranks[rank].kept < b->capacity;
}

/* The last rounds: forwards and inputs first, weights when nothing else can run or a
 * forward needs memory. */
static part choose_at_end(const builder *b, int rank, int slot)
{
    part found = first_part(b, rank, FORWARD_0, INPUT_0, slot);
    if (found != NO_PART && fits(b, rank, found))
        return found;
    for (part i = WEIGHT_1; i <= WEIGHT_0; i++)
        if (first_part(b, rank, i, i, slot) != NO_PART)
            return i;
    /* a forward that does not fit lets inputs pass */
    return found == NO_PART ? NO_PART : first_part(b, rank, INPUT_1, INPUT_0, slot);
}

/* In the order of the pattern; weights fill slots in which what comes next cannot run. */
static part choose_in_order(const builder *b, int rank, int slot)
{
    part next = first_part(b, rank, FORWARD_0, WEIGHT_0, INT_MAX);
    if (next != NO_PART && slot > b->ranks[rank].last_ahead &&
        ready_slot(b, rank, next) <= slot && fits(b, rank, next))
        return next;
    return b->reorders ? first_part(b, rank, WEIGHT_1, WEIGHT_0, slot) : NO_PART;
}

static part choose(const builder *b, int rank, int slot)
{
    const rank_slots *slots = &b->ranks[rank];
    if (!b->reorders)
        return choose_in_order(b, rank, slot);
    /* the end starts after rank 0's last forward */
    int last_forward = b->ranks[0].of[FORWARD_0] + PERIOD * (b->num_microbatches - 1);
    part next = first_part(b, rank, FORWARD_0, INPUT_0, INT_MAX);
    if (next != NO_PART && (pattern_slot(slots, next) < last_forward ||
                            (pattern_slot(slots, next) == last_forward && rank == 0)))
        return choose_in_order(b, rank, slot);
    return slot > slots->last_ahead ? choose_at_end(b, rank, slot)
                                    : first_part(b, rank, WEIGHT_1, WEIGHT_0, slot);
}

static void take_slot(builder *b, int rank, int slot)
{
    rank_slots *slots = &b->ranks[rank];
    if (slots->parts[slot] == NO_PART) {
        part chosen = choose(b, rank, slot);
        if (chosen != NO_PART)
            place(b, rank, chosen, slot);
    }
    part what = (part)slots->parts[slot];
    if (what != NO_PART)
        slots->kept += is_forward(what) ? 1 : is_weight(what) ? -1 : 0;
}

static bool is_done(const builder *b)
{
    for (int rank = 0; rank < b->num_ranks; rank++)
        for (int i = 0; i < NUM_PARTS; i++)
            if (b->ranks[rank].next[i] < b->num_microbatches)
                return false;
    return true;
}

/* How many slots it takes; INT_MAX: it does not come to its end. */
static int build(builder *b)
{
    int num_rounds = PERIOD * (b->num_microbatches - 1);
    int num_ahead = b->ranks[0].of[INPUT_0];
    if (b->reorders)
        place_start(b, num_ahead < num_rounds ? num_ahead : num_rounds);
    for (int slot = 0; slot < b->num_slots; slot++) {
        if (is_done(b)) {
            int end = slot;
            for (int rank = 0; rank < b->num_ranks; rank++)
                end = later(end, b->ranks[rank].last_ahead + 1);
            return end;
        }
        for (int rank = 0; rank < b->num_ranks; rank++)
            take_slot(b, rank, slot);
    }
    return is_done(b) ? b->num_slots : INT_MAX;
}

/* ---- the lists ---- */

/* Chunks that the pattern keeps at most on any rank. */
static int pattern_peak(const builder *b)
{
    int peak = 0, last = b->num_microbatches - 1;
    for (int rank = 0; rank < b->num_ranks; rank++) {
        const int *of = b->ranks[rank].of;
        int kept = 0, end = later(of[WEIGHT_0], of[WEIGHT_1]) + PERIOD * last;
        for (int slot = 0; slot <= end; slot++) {
            for (int i = 0; i < NUM_PARTS; i++) {
                int since = slot - of[i];
                if (since < 0 || since % PERIOD != 0 || since / PERIOD > last)
                    continue;
                kept += is_forward((part)i) ? 1 : is_weight((part)i) ? -1 : 0;
                peak = later(peak, kept);
            }
        }
    }
    return peak;
}

static builder open_builder(const ms_schedule_shape *shape, ms_arena *scratch,
                            bool reorders)
{
    int num_ranks = shape->num_ranks, num_microbatches = shape->num_microbatches;
    builder b = {.num_ranks = num_ranks,
                 .num_microbatches = num_microbatches,
                 .num_slots = PERIOD * (num_microbatches + 2 * num_ranks + 2),
                 .reorders = reorders,
                 .ranks = MS_NEW_ARRAY(scratch, num_ranks, rank_slots)};
    for (int i = FORWARD_0; i <= INPUT_0; i++)
        b.end[i] = MS_NEW_ARRAY(scratch, (long)num_ranks * num_microbatches, int);
    for (int rank = 0; rank < num_ranks; rank++) {
        rank_slots *slots = &b.ranks[rank];
        if (shape->kind == MS_V_HALF)
            half_pattern(num_ranks, rank, slots->of);
        else
            least_pattern(num_ranks, rank, slots->of);
        slots->parts = MS_NEW_ARRAY(scratch, b.num_slots, unsigned char);
        memset(slots->parts, NO_PART, (size_t)b.num_slots);
        slots->held = MS_NEW_ARRAY(scratch, b.num_slots, int);
        slots->last_ahead = -1;
    }
    b.capacity = pattern_peak(&b);
    return b;
}

static void emit(const ms_schedule_shape *shape, const builder *b, ms_action_list *lists)
{
    static const struct {
        ms_action_kind kind;
        int chunk;
    } meaning[NUM_PARTS] = {
        [FORWARD_0] = {MS_FORWARD, 0},        [FORWARD_1] = {MS_FORWARD, 1},
        [INPUT_1] = {MS_BACKWARD_INPUT, 1},   [INPUT_0] = {MS_BACKWARD_INPUT, 0},
        [WEIGHT_1] = {MS_BACKWARD_WEIGHT, 1}, [WEIGHT_0] = {MS_BACKWARD_WEIGHT, 0},
    };
    for (int rank = 0; rank < b->num_ranks; rank++) {
        int microbatch[NUM_PARTS] = {0};
        for (int slot = 0; slot < b->num_slots; slot++) {
            int what = b->ranks[rank].parts[slot];
            if (what != NO_PART)
                ms_action_add(&lists[rank], meaning[what].kind,
                              ms_schedule_stage(shape, rank, meaning[what].chunk),
                              microbatch[what]++);
        }
    }
}

/* The pattern as it is always runs; moving actions rarely makes it longer (V-Min with 7
 * ranks and 5 micro-batches). */
static void fill(const ms_schedule_shape *shape, ms_arena *scratch, ms_action_list *lists)
{
    builder plain = open_builder(shape, scratch, false);
    builder moved = open_builder(shape, scratch, true);
    int plain_slots = build(&plain), moved_slots = build(&moved);
    assert(plain_slots < INT_MAX);
    emit(shape, moved_slots <= plain_slots ? &moved : &plain, lists);
}

static const char *objection(const ms_schedule_shape *shape)
{
    (void)shape; /* any number of ranks and micro-batches runs */
    return NULL;
}

#define PATTERN_TRAITS                                                                   \
    {                                                                                    \
        .placement = MS_PLACE_V, .least_virtual = 2, .most_virtual = 2,                  \
        .splits_backward = true                                                          \
    }

const ms_schedule_family ms_family_v_half = {MS_ALIASES("zbv-half"),
                                             .traits = PATTERN_TRAITS,
                                             .objection = objection, .fill = fill};
const ms_schedule_family ms_family_v_min = {MS_ALIASES("zbv-min"),
                                            .traits = PATTERN_TRAITS,
                                            .objection = objection, .fill = fill};
