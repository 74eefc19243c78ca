/* What a block of ranks looks like on domains depends on the place in a domain at which
 * it begins alone. So patterns of all places are made mode by mode, from the inside, and
 * those of n blocks in a row by doubling: no rank of a group is looked at, and no group
 * but one for each place. */
#include "topo/mesh_footing.h"

#include "base/arena.h"
#include "base/number.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

/* Ranks in each domain that a block touches, in order. */
typedef struct pattern {
    long num_domains;
    long first, last; /* ranks in the first and the last domain */
    long least;       /* fewest in a domain between them; LONG_MAX: there is none */
} pattern;

/* Of the blocks that begin at each place of a domain. */
typedef struct patterns {
    pattern *of; /* (domain) */
    long reach;  /* from the first rank of a block to its last */
} patterns;

static long least_of(long a, long b)
{
    return a < b ? a : b;
}

/* Two blocks, the second behind the first. */
static pattern join(const pattern *a, const pattern *b, bool share_domain)
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

/* Behind each block of `a`, `step` ranks after its start, one of `b`; into a->of or
 * elsewhere. */
static void join_all(const patterns *a, const patterns *b, long step, long domain,
                     pattern *out)
{
    for (long place = 0; place < domain; place++) {
        long next = place + step;
        bool share_domain = (place + a->reach) / domain == next / domain;
        out[place] = join(&a->of[place], &b->of[next % domain], share_domain);
    }
}

/* `blocks` becomes size of them in a row, a stride apart. `room`, `twice`: of `domain`
 * each. */
static void repeat(patterns *blocks, const ms_mode *mode, long domain, pattern *room,
                   pattern *twice)
{
    patterns row = {room, 0}, power = *blocks;
    long done = 0;
    for (long num = 1; num <= mode->size; num *= 2) {
        if (mode->size & num) {
            if (done == 0)
                memcpy(row.of, power.of, (size_t)domain * sizeof *row.of);
            else
                join_all(&row, &power, done * mode->stride, domain, row.of);
            done += num;
            row.reach = (done - 1) * mode->stride + blocks->reach;
        }
        join_all(&power, &power, num * mode->stride, domain, twice);
        memcpy(power.of, twice, (size_t)domain * sizeof *twice);
        power.reach += num * mode->stride;
    }
    memcpy(blocks->of, row.of, (size_t)domain * sizeof *row.of);
    blocks->reach = row.reach;
}

static patterns patterns_of(ms_arena *arena, const ms_mode *modes, int num_modes,
                            long domain)
{
    pattern *room = MS_NEW_ARRAY(arena, domain, pattern),
            *twice = MS_NEW_ARRAY(arena, domain, pattern);
    patterns all = {MS_NEW_ARRAY(arena, domain, pattern), 0};
    for (long place = 0; place < domain; place++)
        all.of[place] =
            (pattern){.num_domains = 1, .first = 1, .last = 1, .least = LONG_MAX};
    for (int i = num_modes - 1; i >= 0; i--)
        repeat(&all, &modes[i], domain, room, twice);
    return all;
}

#define NO_RANK LONG_MAX

/* Adds the groups that begin further along one axis: the least first rank of those that
 * begin at each place. */
static void spread_starts(long *starts, long *before, long size, long stride, long domain)
{
    long num_places = domain / ms_greatest_divisor(stride, domain);
    memcpy(before, starts, (size_t)domain * sizeof *starts);
    for (long place = 0; place < domain; place++) {
        if (before[place] == NO_RANK)
            continue;
        for (long i = 1; i < size && i < num_places; i++) {
            long start = before[place] + i * stride;
            starts[start % domain] = least_of(starts[start % domain], start);
        }
    }
}

/* The axes that the group does not run over: inside its innermost mode, between its
 * modes, and outside of them. */
static long *starts_of(ms_arena *arena, const ms_mode *modes, int num_modes,
                       long num_ranks, long domain)
{
    long *starts = MS_NEW_ARRAY(arena, domain, long),
         *before = MS_NEW_ARRAY(arena, domain, long);
    for (long place = 1; place < domain; place++)
        starts[place] = NO_RANK;
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

static void note_pattern(ms_footing *footing, const pattern *p, bool is_cut)
{
    if (p->num_domains > footing->num_domains)
        footing->num_domains = p->num_domains;
    if (p->num_domains == 1)
        return;
    note_narrow(footing, p->first);
    if (p->num_domains > 2)
        note_narrow(footing, p->least);
    if (!is_cut)
        note_narrow(footing, p->last);
}

ms_footing ms_footing_of(const ms_group *group, long num_ranks, long domain)
{
    ms_arena *arena = ms_arena_open();
    ms_mode modes[MS_MAX_AXES] = {{0, 0}};
    long unit = domain; /* ranks that lie alike */
    for (int i = 0; i < group->num_modes; i++)
        unit = ms_greatest_divisor(group->modes[i].stride, unit);
    for (int i = 0; i < group->num_modes; i++)
        modes[i] = (ms_mode){group->modes[i].size, group->modes[i].stride / unit};
    domain /= unit;
    num_ranks /= unit;
    patterns all = patterns_of(arena, modes, group->num_modes, domain);
    const long *starts = starts_of(arena, modes, group->num_modes, num_ranks, domain);
    ms_footing footing = {.num_domains = 1};
    for (long place = 0; place < domain; place++) {
        if (starts[place] == NO_RANK)
            continue;
        long last_domain = (starts[place] + all.reach) / domain;
        bool is_cut = num_ranks % domain != 0 && last_domain == num_ranks / domain;
        note_pattern(&footing, &all.of[place], is_cut);
    }
    ms_arena_close(arena);
    return footing;
}
