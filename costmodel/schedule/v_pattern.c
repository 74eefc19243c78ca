/* The schedules V-Half and V-Min: stages r and 2p-1-r on rank r; a half and about a third
 * of 1F1B's activations. All actions take one time slot. Every micro-batch repeats the
 * pattern of the previous one 6 slots later; then actions move into idle slots at the
 * start and the end within the memory peak. Source: Qi et al. 2024, "Pipeline Parallelism
 * with Controllable Memory" (arXiv 2405.15362), sections 3 and 4;
 * sail-sg/zero-bubble-pipeline-parallelism, scheduler/zbv_greedy.py. */
#include "costmodel/schedule/schedule_priv.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define PERIOD 6

typedef enum part {
    FORWARD_0, /* forward of a rank's first chunk */
    FORWARD_1,
    INPUT_1,
    INPUT_0,
    WEIGHT_1,
    WEIGHT_0,
    NUM_PARTS,
    NO_PART = NUM_PARTS
} part;

typedef struct rank_slots {
    int of[NUM_PARTS];   /* [part] slot in micro-batch 0; PERIOD later in each next one */
    int next[NUM_PARTS]; /* [part] micro-batch of the next action */
    int live;            /* number of alive (micro-batch, chunk) pairs */
    unsigned char *parts; /* (num_slots) part that runs in a slot; NO_PART: idle */
    int *held;            /* (num_slots) number of chunks that moved actions keep alive */
    int last_ahead;       /* last slot of a forward or I moved ahead; -1: none */
} rank_slots;

typedef struct builder {
    int num_ranks, num_microbatches;
    int capacity;  /* most alive chunks on a rank: the pattern's peak */
    int num_slots; /* limit of the time slots of a rank's list */
    bool reorders;
    rank_slots *ranks;
    int *end[INPUT_0 + 1]; /* [part] (num_ranks, num_microbatches) end slot; 0: none */
} builder;

/* ---- the pattern ---- */

static int modulo(int a)
{
    return ((a % PERIOD) + PERIOD) % PERIOD;
}

/* The first slot from `from` on that equals `rest` modulo the pattern's period. */
static int next_slot(int from, int rest)
{
    return from + modulo(rest - from);
}

/* Sets of[part], the slot of each action of micro-batch 0, for V-Half (arXiv 2405.15362).
 * Modulo 6 and after of[FORWARD_0]: INPUT_1 has slot 2, WEIGHT_1 3, WEIGHT_0 5; FORWARD_1
 * and INPUT_0 have 1 and 4, or 4 and 1. */
static void half_pattern(int num_ranks, int rank, int *of)
{
    int behind = num_ranks - 1 - rank;
    int turn = next_slot(3 * num_ranks - 1, 2); /* rank 0's input gradient of chunk 1 */
    of[FORWARD_0] = 2 * rank;
    of[FORWARD_1] = 2 * (num_ranks - 1) + 1 + behind;
    of[INPUT_1] = turn + 2 * rank;
    of[INPUT_0] = turn + 2 * (num_ranks - 1) + 2 + behind;
    of[WEIGHT_1] = of[INPUT_1] + 1;
    of[WEIGHT_0] = next_slot(of[INPUT_0] + 1, of[FORWARD_0] + 5);
}

/* Sets of[part], as half_pattern, for V-Min: neighbouring ranks are one slot apart;
 * weight gradients take the first free slots. Source: arXiv 2405.15362, V-Min. */
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

/* ---- dependencies ---- */

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

/* First slot in which a rank's next action of one kind can run; INT_MAX: unknown. */
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
    case INPUT_0: /* FORWARD_0 has run: INPUT_1, awaited here, needed it */
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

/* ---- the start: parts before rank 0's first I of chunk 0, as early as possible ---- */

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

/* The first in pattern order among a rank's next actions of kinds `from` .. `to` that can
 * run by slot `ready_at` (INT_MAX: among all of them); NO_PART: none. */
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
    return !is_forward(what) || b->ranks[rank].live < b->capacity;
}

/* Chooses in the last rounds: a forward or input gradient; if none can run, a W. */
static part choose_at_end(const builder *b, int rank, int slot)
{
    part found = first_part(b, rank, FORWARD_0, INPUT_0, slot);
    if (found != NO_PART && fits(b, rank, found))
        return found;
    for (part i = WEIGHT_1; i <= WEIGHT_0; i++)
        if (first_part(b, rank, i, i, slot) != NO_PART)
            return i;
    /* if memory allows no forward, input gradients go first */
    return found == NO_PART ? NO_PART : first_part(b, rank, INPUT_1, INPUT_0, slot);
}

/* Chooses the pattern's next action, or a weight gradient if that cannot run yet. */
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
    /* the last rounds begin after rank 0's last forward */
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
        slots->live += is_forward(what) ? 1 : is_weight(what) ? -1 : 0;
}

static bool is_done(const builder *b)
{
    for (int rank = 0; rank < b->num_ranks; rank++)
        for (int i = 0; i < NUM_PARTS; i++)
            if (b->ranks[rank].next[i] < b->num_microbatches)
                return false;
    return true;
}

/* Places all actions. Returns the number of slots used; INT_MAX: more than num_slots. */
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

/* Most chunks alive at once on any rank in the repeated pattern. */
static int pattern_peak(const builder *b)
{
    int peak = 0, last = b->num_microbatches - 1;
    for (int rank = 0; rank < b->num_ranks; rank++) {
        const int *of = b->ranks[rank].of;
        int live = 0, end = later(of[WEIGHT_0], of[WEIGHT_1]) + PERIOD * last;
        for (int slot = 0; slot <= end; slot++) {
            for (int i = 0; i < NUM_PARTS; i++) {
                int since = slot - of[i];
                if (since < 0 || since % PERIOD != 0 || since / PERIOD > last)
                    continue;
                live += is_forward((part)i) ? 1 : is_weight((part)i) ? -1 : 0;
                peak = later(peak, live);
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

/* Fills all ranks' lists by whichever is shorter: the plain pattern, which always ends,
 * or the pattern with moved actions, which rarely is longer (V-Min, p 7, m 5). */
static void fill(const ms_schedule_shape *shape, ms_arena *scratch, ms_action_list *lists)
{
    builder plain = open_builder(shape, scratch, false);
    builder moved = open_builder(shape, scratch, true);
    int plain_slots = build(&plain), moved_slots = build(&moved);
    assert(plain_slots < INT_MAX);
    emit(shape, moved_slots <= plain_slots ? &moved : &plain, lists);
}

#define PATTERN_FAMILY(...)                                                              \
    {                                                                                    \
        MS_ALIASES(__VA_ARGS__), .fill = fill, .traits = {                               \
            .placement = MS_PLACE_V,                                                     \
            .least_virtual = 2,                                                          \
            .most_virtual = 2,                                                           \
            .splits_backward = true,                                                     \
            .repeats_after = 2                                                           \
        }                                                                                \
    }
const ms_schedule_family ms_family_v_half = PATTERN_FAMILY("zbv-half");
const ms_schedule_family ms_family_v_min = PATTERN_FAMILY("zbv-min");
