#include "sim/simulate/link_uses.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

ms_link_uses *ms_link_uses_open(ms_arena *arena, const ms_plan *plan,
                                const ms_fabric *fabric, const double *slow_factor)
{
    ms_link_uses *u = MS_NEW(arena, ms_link_uses);
    u->arena = arena;
    u->fabric = fabric;
    u->groups = ms_plan_groups_of(plan);
    u->slow_factor = slow_factor;
    for (int i = 0; i < MS_NUM_TRAFFIC_GROUPS; i++)
        u->axis[i] = ms_group_axis(arena, &u->groups, i);
    return u;
}

static bool same_kind(const ms_use_kind *a, const ms_use_kind *b)
{
    return a->group == b->group && a->collective == b->collective && a->ring == b->ring &&
           a->from == b->from && a->wire_frac == b->wire_frac && a->to == b->to &&
           a->algorithm == b->algorithm;
}

int ms_link_uses_kind(ms_link_uses *u, ms_use_kind kind)
{
    for (int i = 0; i < u->num_kinds; i++)
        if (same_kind(&u->kinds[i], &kind))
            return i;
    MS_MAKE_ROOM(u->arena, u->kinds, u->num_kinds, u->capacity, 32);
    u->kinds[u->num_kinds] = kind;
    return u->num_kinds++;
}

/* ---- loads ---- */

static long num_groups(const ms_link_uses *u, const ms_use_kind *kind)
{
    return u->axis[kind->group].num_groups;
}

/* First rank of a communication group; for sends (MS_TRAFFIC_PP) the sending rank. */
static long first_rank(const ms_link_uses *u, const ms_use_kind *kind, long group)
{
    const ms_fold_axis *axis = &u->axis[kind->group];
    return axis
        ->ranks[group * axis->size + (kind->group == MS_TRAFFIC_PP ? kind->from : 0)];
}

/* Adds to `load` the bytes on each link for a one-byte collective `kind` in one group. */
static void add_load(const ms_link_uses *u, const ms_use_kind *kind, long group,
                     ms_link_load *load)
{
    const ms_fold_axis *axis = &u->axis[kind->group];
    const long *ranks = axis->ranks + group * axis->size;
    long ends[2] = {ranks[kind->from], ranks[kind->to]};
    load->wire_frac = kind->wire_frac;
    ms_flow all = {kind->collective, ranks, axis->size, 1.0};
    ms_flow send = {MS_SEND, ends, 2, 1.0};
    if (kind->group != MS_TRAFFIC_PP) {
        ms_flows_add(load, kind->algorithm, &all);
        ends[0] = ranks[axis->size - 1];
        ends[1] = ranks[0];
    }
    if (kind->group == MS_TRAFFIC_PP || kind->ring)
        ms_flows_add(load, MS_ALGORITHM_SEND, &send);
}

/* ---- signatures ---- */

/* Mixes the bits of a word (the finaliser of SplitMix64). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint64_t extend(uint64_t seen, uint64_t number)
{
    return mix(seen + (number + 1) * UINT64_C(0x9E3779B97F4A7C15));
}

/* Rounds a load to 20 bits, so that sums that differ only by rounding are equal. */
static uint64_t round_load(double load)
{
    int exponent;
    double fraction = frexp(load, &exponent);
    return (uint64_t)(llround(fraction * 1048576.0) + (int64_t)exponent * (1 << 24));
}

static uint64_t *initial_signatures(const ms_link_uses *u)
{
    uint64_t *seen = MS_NEW_ARRAY(u->arena, u->fabric->num_links + 1, uint64_t);
    for (long i = 0; i < u->fabric->num_links; i++)
        seen[i] = extend(round_load(u->fabric->links[i].bytes_per_s),
                         round_load(u->slow_factor[i]));
    return seen;
}

static void note_loads(uint64_t *seen, const ms_link_load *load, uint64_t which)
{
    for (int i = 0; i < load->num_loaded; i++) {
        int link = load->loaded[i];
        seen[link] = extend(extend(seen[link], which), round_load(load->bytes[link]));
    }
}

static int compare_words(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Fills numbers[i] with the index of words[i] among all distinct; returns their count. */
static int number_words(ms_arena *scratch, const uint64_t *words, long num, int *numbers)
{
    uint64_t *sorted = MS_NEW_ARRAY(scratch, num + 1, uint64_t);
    long distinct = 0;
    memcpy(sorted, words, (size_t)num * sizeof *sorted);
    qsort(sorted, (size_t)num, sizeof *sorted, compare_words);
    for (long i = 0; i < num; i++)
        if (i == 0 || sorted[i] != sorted[i - 1])
            sorted[distinct++] = sorted[i];
    for (long i = 0; i < num; i++) {
        const uint64_t *at =
            bsearch(&words[i], sorted, (size_t)distinct, sizeof *sorted, compare_words);
        numbers[i] = (int)(at - sorted);
    }
    return (int)distinct;
}

/* Hash of the links that a group loads and of the load on each, in any order. */
static uint64_t group_word(const uint64_t *seen, const ms_link_load *load)
{
    uint64_t sum = 0;
    for (int i = 0; i < load->num_loaded; i++)
        sum += extend(seen[load->loaded[i]], round_load(load->bytes[load->loaded[i]]));
    return sum;
}

int *ms_link_uses_colours(ms_link_uses *u)
{
    long num_ranks = u->groups.mesh.num_ranks;
    ms_link_load load = ms_link_load_open(u->arena, u->fabric);
    uint64_t *seen = initial_signatures(u);
    uint64_t *words = MS_NEW_ARRAY(u->arena, num_ranks, uint64_t);
    int *colours = MS_NEW_ARRAY(u->arena, num_ranks, int);
    for (int k = 0; k < u->num_kinds; k++) {
        ms_link_load_clear(&load);
        for (long g = 0; g < num_groups(u, &u->kinds[k]); g++)
            add_load(u, &u->kinds[k], g, &load);
        note_loads(seen, &load, (uint64_t)k);
    }
    for (int k = 0; k < u->num_kinds; k++) {
        const ms_fold_axis *axis = &u->axis[u->kinds[k].group];
        for (long g = 0; g < axis->num_groups; g++) {
            ms_link_load_clear(&load);
            add_load(u, &u->kinds[k], g, &load);
            uint64_t word = group_word(seen, &load);
            for (long i = 0; i < axis->size; i++) {
                uint64_t *own = &words[axis->ranks[g * axis->size + i]];
                *own = extend(extend(*own, (uint64_t)k), word);
            }
        }
    }
    number_words(u->arena, words, num_ranks, colours);
    return colours;
}

/* ---- folding ---- */

/* For one kind of collective: the links that each meeting (communicating ranks) loads. */
typedef struct meeting_loads {
    int num_meetings;
    long *first; /* (num_meetings + 1): where a meeting starts in links and loads */
    int *links;
    double *loads;
} meeting_loads;

static int meeting_of(const ms_link_uses *u, const ms_use_kind *kind,
                      const ms_actors *actors, long group)
{
    int actor = actors->fold.class_of[first_rank(u, kind, group)];
    return kind->group == MS_TRAFFIC_PP ? actor
                                        : actors->meetings[kind->group].of_actor[actor];
}

static void append_loads(ms_arena *arena, meeting_loads *out, long *capacity, long at,
                         const ms_link_load *load)
{
    if (out->links == NULL || at + load->num_loaded > *capacity) {
        long larger = 2 * (at + load->num_loaded) + 64;
        int *links = MS_NEW_ARRAY(arena, larger, int);
        double *loads = MS_NEW_ARRAY(arena, larger, double);
        if (at > 0) {
            memcpy(links, out->links, (size_t)at * sizeof *links);
            memcpy(loads, out->loads, (size_t)at * sizeof *loads);
        }
        out->links = links;
        out->loads = loads;
        *capacity = larger;
    }
    for (int i = 0; i < load->num_loaded; i++) {
        out->links[at + i] = load->loaded[i];
        out->loads[at + i] = load->bytes[load->loaded[i]];
    }
}

static meeting_loads load_meetings(const ms_link_uses *u, int k, const ms_actors *actors,
                                   ms_arena *scratch, ms_link_load *load, uint64_t *seen)
{
    const ms_use_kind *kind = &u->kinds[k];
    long num = num_groups(u, kind), capacity = 0, at = 0;
    int num_meetings =
        kind->group == MS_TRAFFIC_PP ? actors->num : actors->meetings[kind->group].num;
    meeting_loads out = {.num_meetings = num_meetings,
                         .first = MS_NEW_ARRAY(scratch, num_meetings + 1, long)};
    /* next[group]: 1 + the next group of the same meeting; 0: none */
    long *next = MS_NEW_ARRAY(scratch, num + 1, long);
    /* head[meeting]: 1 + the meeting's first group; 0: none */
    long *head = MS_NEW_ARRAY(scratch, num_meetings + 1, long);
    for (long g = num - 1; g >= 0; g--) {
        int m = meeting_of(u, kind, actors, g);
        next[g] = head[m];
        head[m] = g + 1;
    }
    for (int m = 0; m < num_meetings; m++) {
        ms_link_load_clear(load);
        for (long g = head[m]; g != 0; g = next[g - 1])
            add_load(u, kind, g - 1, load);
        note_loads(seen, load, (uint64_t)m * 4096 + (uint64_t)k);
        out.first[m] = at;
        append_loads(scratch, &out, &capacity, at, load);
        at += load->num_loaded;
    }
    out.first[num_meetings] = at;
    return out;
}

/* Stores the load per meeting (communicating ranks) and class of equally loaded links. */
static void store_uses(ms_link_uses *u, int k, const meeting_loads *from,
                       const int *class_of, int *mark)
{
    long num = from->first[from->num_meetings];
    ms_class_use *uses = MS_NEW_ARRAY(u->arena, num + 1, ms_class_use);
    u->first[k] = MS_NEW_ARRAY(u->arena, from->num_meetings + 1, int);
    int at = 0;
    for (int m = 0; m < from->num_meetings; m++) {
        u->first[k][m] = at;
        int begin = at;
        for (long i = from->first[m]; i < from->first[m + 1]; i++) {
            int class = class_of[from->links[i]];
            if (mark[class] > begin)
                continue;
            uses[at++] = (ms_class_use){class, from->loads[i]};
            mark[class] = at;
        }
        for (int i = begin; i < at; i++)
            mark[uses[i].link_class] = 0;
    }
    u->first[k][from->num_meetings] = at;
    u->uses[k] = uses;
}

void ms_link_uses_fold(ms_link_uses *u, const ms_actors *actors)
{
    long num_links = u->fabric->num_links;
    ms_arena *scratch = ms_arena_open();
    ms_link_load load = ms_link_load_open(scratch, u->fabric);
    uint64_t *seen = initial_signatures(u);
    meeting_loads *loads = MS_NEW_ARRAY(scratch, u->num_kinds, meeting_loads);
    for (int k = 0; k < u->num_kinds; k++)
        loads[k] = load_meetings(u, k, actors, scratch, &load, seen);
    int *class_of = MS_NEW_ARRAY(scratch, num_links + 1, int);
    u->num_classes = number_words(scratch, seen, num_links, class_of);
    int *link_of_class = MS_NEW_ARRAY(u->arena, u->num_classes, int);
    for (long i = num_links - 1; i >= 0; i--)
        link_of_class[class_of[i]] = (int)i;
    u->link_of_class = link_of_class;
    u->first = MS_NEW_ARRAY(u->arena, u->num_kinds, int *);
    u->uses = MS_NEW_ARRAY(u->arena, u->num_kinds, const ms_class_use *);
    int *mark = MS_NEW_ARRAY(scratch, u->num_classes, int);
    for (int k = 0; k < u->num_kinds; k++)
        store_uses(u, k, &loads[k], class_of, mark);
    ms_arena_close(scratch);
}
