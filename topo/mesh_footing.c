/* A block of ranks touches domains by a pattern that depends only on the place in a
 * domain where the block starts. Patterns for all places are built from the innermost
 * mode outwards, those of n copies of a block by doubling; ranks are never enumerated. */
#include "topo/mesh_footing.h"

#include "base/arena.h"
#include "base/number.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

/* How a block of ranks lies on the domains that it touches, in ascending order. */
typedef struct pattern {
    long num_domains;
    long first, last; /* ranks in the first and the last domain */
    /* fewest ranks in a domain between first and last; LONG_MAX: there is none */
    long least;
} pattern;

/* Patterns of a block, for every place of a domain at which the block can start. */
typedef struct patterns {
    pattern *at; /* [place in a domain] pattern of the block that starts there */
    long reach;  /* distance from the first rank of the block to its last */
} patterns;

static long least_of(long a, long b)
{
    return a < b ? a : b;
}

/* Pattern of two blocks in a row; share_domain: b starts in the last domain of a. */
static pattern join_patterns(const pattern *a, const pattern *b, bool share_domain)
{
    pattern p = {.num_domains = a->num_domains + b->num_domains - share_domain,
                 .first = a->first,
                 .last = b->last,
                 .least = least_of(a->least, b->least)};
    if (!share_domain) {
        p.least = a->num_domains > 1 ? least_of(p.least, a->last) : p.least;
        p.least = b->num_domains > 1 ? least_of(p.least, b->first) : p.least;
        return p;
    }
    long shared = a->last + b->first;
    if (a->num_domains == 1)
        p.first = shared;
    if (b->num_domains == 1)
        p.last = shared;
    if (a->num_domains > 1 && b->num_domains > 1)
        p.least = least_of(p.least, shared);
    return p;
}

/* Sets out[place] (`out` may be a->at) to a->at[place] joined with b `step` ranks
 * later. */
static void join_all_patterns(const patterns *a, const patterns *b, long step,
                              long domain, pattern *out)
{
    for (long place = 0; place < domain; place++) {
        long next = place + step;
        bool share_domain = (place + a->reach) / domain == next / domain;
        out[place] = join_patterns(&a->at[place], &b->at[next % domain], share_domain);
    }
}

/* Replaces blocks by mode->size copies, mode->stride ranks apart; last two: scratch. */
static void repeat(patterns *blocks, const ms_mode *mode, long domain,
                   pattern *row_buffer, pattern *doubled)
{
    patterns row = {row_buffer, 0}, power = *blocks;
    long done = 0;
    for (long num = 1; num <= mode->size; num *= 2) {
        if (mode->size & num) {
            if (done == 0)
                memcpy(row.at, power.at, (size_t)domain * sizeof *row.at);
            else
                join_all_patterns(&row, &power, done * mode->stride, domain, row.at);
            done += num;
            row.reach = (done - 1) * mode->stride + blocks->reach;
        }
        join_all_patterns(&power, &power, num * mode->stride, domain, doubled);
        memcpy(power.at, doubled, (size_t)domain * sizeof *doubled);
        power.reach += num * mode->stride;
    }
    memcpy(blocks->at, row.at, (size_t)domain * sizeof *row.at);
    blocks->reach = row.reach;
}

static patterns patterns_of(ms_arena *arena, const ms_mode *modes, int num_modes,
                            long domain)
{
    pattern *row_buffer = MS_NEW_ARRAY(arena, domain, pattern),
            *doubled = MS_NEW_ARRAY(arena, domain, pattern);
    patterns all = {MS_NEW_ARRAY(arena, domain, pattern), 0};
    for (long place = 0; place < domain; place++)
        all.at[place] =
            (pattern){.num_domains = 1, .first = 1, .last = 1, .least = LONG_MAX};
    for (int i = num_modes - 1; i >= 0; i--)
        repeat(&all, &modes[i], domain, row_buffer, doubled);
    return all;
}

/* Adds to starts[place] the `size` copies of all groups, `stride` ranks apart: whether a
 * group starts at `place` of a domain. `before` is a buffer. */
static void spread_starts(bool *starts, bool *before, long size, long stride, long domain)
{
    long num_places = domain / ms_greatest_divisor(stride, domain);
    memcpy(before, starts, (size_t)domain * sizeof *starts);
    for (long place = 0; place < domain; place++)
        for (long i = 1; before[place] && i < size && i < num_places; i++)
            starts[(place + i * stride) % domain] = true;
}

/* [place] whether one of the mesh's groups starts at this place of a domain. Groups
 * repeat inside, between and outside the modes. */
static bool *starts_of(ms_arena *arena, const ms_mode *modes, int num_modes,
                       long num_ranks, long domain)
{
    bool *starts = MS_NEW_ARRAY(arena, domain, bool),
         *before = MS_NEW_ARRAY(arena, domain, bool);
    starts[0] = true;
    long inside = 1;
    for (int i = num_modes - 1; i >= 0; i--) {
        spread_starts(starts, before, modes[i].stride / inside, inside, domain);
        inside = modes[i].size * modes[i].stride;
        assert(inside >= 1);
    }
    assert(num_ranks % inside == 0);
    spread_starts(starts, before, num_ranks / inside, inside, domain);
    return starts;
}

static void note_narrow(ms_footing *footing, long ranks)
{
    if (footing->narrowest == 0 || ranks < footing->narrowest)
        footing->narrowest = ranks;
}

static void note_pattern(ms_footing *footing, const pattern *p)
{
    if (p->num_domains > footing->num_domains)
        footing->num_domains = p->num_domains;
    if (p->num_domains == 1)
        return;
    note_narrow(footing, p->first);
    if (p->num_domains > 2)
        note_narrow(footing, p->least);
    note_narrow(footing, p->last);
}

ms_footing ms_footing_of(const ms_group *group, long num_ranks, long domain)
{
    ms_arena *arena = ms_arena_open();
    ms_mode modes[MS_MAX_AXES] = {{0, 0}};
    long unit = domain; /* divisor of strides and domain: blocks of `unit` stay whole */
    for (int i = 0; i < group->num_modes; i++)
        unit = ms_greatest_divisor(group->modes[i].stride, unit);
    for (int i = 0; i < group->num_modes; i++)
        modes[i] = (ms_mode){group->modes[i].size, group->modes[i].stride / unit};
    domain /= unit;
    num_ranks /= unit;
    patterns all = patterns_of(arena, modes, group->num_modes, domain);
    const bool *starts = starts_of(arena, modes, group->num_modes, num_ranks, domain);
    ms_footing footing = {.num_domains = 1};
    for (long place = 0; place < domain; place++)
        if (starts[place])
            note_pattern(&footing, &all.at[place]);
    ms_arena_close(arena);
    return footing;
}
