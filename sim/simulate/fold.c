/* Folds ranks that behave alike into classes by colour refinement in rounds: a rank's
 * next colour is a hash of its colour and of the colours in each of its groups. The
 * colours in a group are summed as 128-bit hashes: the order of its members has no
 * effect, and two different groups get equal sums with a probability of 2^-128. Rounds
 * end when no class splits: after two on a uniform mesh, otherwise after as many as the
 * longest chain of neighbours by which two ranks differ. */
#include "sim/simulate/fold.h"

#include <stdint.h>
#include <string.h>

typedef struct hash {
    uint64_t low, high;
} hash;

/* Mixes the bits of a word (the finaliser of SplitMix64). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Extends a 128-bit hash, two independent words, by a number. */
static hash extend(hash seen, uint64_t number)
{
    return (hash){mix(seen.low + (number + 1) * UINT64_C(0x9E3779B97F4A7C15)),
                  mix(seen.high ^ (number + 1) * UINT64_C(0xD1342543DE82EF95))};
}

typedef struct slot {
    hash key;
    int class; /* class number + 1; 0: the hash slot is empty */
} slot;

typedef struct refinement {
    long num_ranks;
    int num_classes;
    int *class_of;
    hash *colour_hash; /* (num_ranks): hash of each class number */
    hash *next;        /* (num_ranks): hash of a rank's colour and its neighbours' */
    slot *slots;
    long num_slots; /* size of `slots`: a power of two, at least 2 num_ranks */
} refinement;

/* ---- a round ---- */

static hash group_hash(const refinement *r, const ms_fold_axis *axis, const long *ranks)
{
    hash sum = {0, 0};
    for (long i = 0; i < axis->size; i++) {
        hash colour = r->colour_hash[r->class_of[ranks[i]]];
        if (axis->ordered)
            colour = extend(colour, (uint64_t)i);
        sum.low += colour.low;
        sum.high += colour.high;
    }
    return sum;
}

static void hash_groups(const refinement *r, const ms_fold_axis *axis)
{
    for (long g = 0; g < axis->num_groups; g++) {
        const long *ranks = axis->ranks + g * axis->size;
        hash seen = group_hash(r, axis, ranks);
        for (long i = 0; i < axis->size; i++) {
            hash *next = &r->next[ranks[i]];
            *next = extend(*next, axis->ordered ? (uint64_t)i : 0);
            next->low = mix(next->low + seen.low);
            next->high = mix(next->high ^ seen.high);
        }
    }
}

/* Numbers classes, ranks of equal hash each, in the order of their smallest ranks. */
static void number_classes(refinement *r)
{
    uint64_t last = (uint64_t)r->num_slots - 1;
    memset(r->slots, 0, (size_t)r->num_slots * sizeof *r->slots);
    r->num_classes = 0;
    for (long rank = 0; rank < r->num_ranks; rank++) {
        hash key = r->next[rank];
        uint64_t at = key.low & last;
        while (r->slots[at].class != 0 &&
               (r->slots[at].key.low != key.low || r->slots[at].key.high != key.high))
            at = (at + 1) & last;
        if (r->slots[at].class == 0)
            r->slots[at] = (slot){key, ++r->num_classes};
        r->class_of[rank] = r->slots[at].class - 1;
    }
}

/* ---- the partition ---- */

static refinement start_refinement(ms_arena *arena, ms_arena *scratch, long num_ranks,
                                   const int *colour)
{
    refinement r = {.num_ranks = num_ranks, .num_slots = 2};
    while (r.num_slots < 2 * num_ranks)
        r.num_slots *= 2;
    r.class_of = MS_NEW_ARRAY(arena, num_ranks, int);
    r.colour_hash = MS_NEW_ARRAY(scratch, num_ranks, hash);
    r.next = MS_NEW_ARRAY(scratch, num_ranks, hash);
    r.slots = MS_NEW_ARRAY(scratch, r.num_slots, slot);
    for (long rank = 0; rank < num_ranks; rank++)
        r.next[rank] = extend((hash){0, 0}, (uint64_t)(int64_t)colour[rank]);
    for (long i = 0; i < num_ranks; i++)
        r.colour_hash[i] = extend((hash){1, 2}, (uint64_t)i);
    number_classes(&r);
    return r;
}

static void refine(refinement *r, const ms_fold_axis *axes, int num_axes)
{
    for (int before = 0; before < r->num_classes;) {
        before = r->num_classes;
        for (long rank = 0; rank < r->num_ranks; rank++)
            r->next[rank] = r->colour_hash[r->class_of[rank]];
        for (int axis = 0; axis < num_axes; axis++)
            if (axes[axis].size > 1)
                hash_groups(r, &axes[axis]);
        number_classes(r);
    }
}

static ms_fold gather_classes(ms_arena *arena, const refinement *r)
{
    long *member = MS_NEW_ARRAY(arena, r->num_classes, long);
    long *multiplicity = MS_NEW_ARRAY(arena, r->num_classes, long);
    for (long rank = r->num_ranks - 1; rank >= 0; rank--) {
        member[r->class_of[rank]] = rank;
        multiplicity[r->class_of[rank]]++;
    }
    return (ms_fold){r->num_ranks, r->num_classes, r->class_of, member, multiplicity};
}

ms_fold ms_fold_make(ms_arena *arena, long num_ranks, const int *colour,
                     const ms_fold_axis *axes, int num_axes)
{
    ms_arena *scratch = ms_arena_open();
    refinement r = start_refinement(arena, scratch, num_ranks, colour);
    refine(&r, axes, num_axes);
    ms_fold fold = gather_classes(arena, &r);
    ms_arena_close(scratch);
    return fold;
}

ms_fold ms_fold_none(ms_arena *arena, long num_ranks)
{
    int *class_of = MS_NEW_ARRAY(arena, num_ranks, int);
    long *member = MS_NEW_ARRAY(arena, num_ranks, long);
    long *multiplicity = MS_NEW_ARRAY(arena, num_ranks, long);
    for (long rank = 0; rank < num_ranks; rank++) {
        class_of[rank] = (int)rank;
        member[rank] = rank;
        multiplicity[rank] = 1;
    }
    return (ms_fold){num_ranks, (int)num_ranks, class_of, member, multiplicity};
}
