#include "exec/cuda/cuda_channels.h"

#include <assert.h>
#include <stdlib.h>

/* ---- groups ---- */

/* Kinds of group and stream with a communicator of their own, because they communicate at
 * the same time (exec/params/unit_moves.c, unit_gradients.c, exec/lower/lower.c). On
 * other streams a group uses the communicator of its first entry here. */
static const ms_cuda_kind kind_table[] = {
    {MS_TRAFFIC_TP, MS_STREAM_TP, false},
    {MS_TRAFFIC_CP, MS_STREAM_CP, false},
    {MS_TRAFFIC_EP, MS_STREAM_EP, false},
    {MS_TRAFFIC_FSDP, MS_STREAM_GATHER, false},
    {MS_TRAFFIC_FSDP, MS_STREAM_REDUCE, false},
    {MS_TRAFFIC_EXPERT_FSDP, MS_STREAM_GATHER, false},
    {MS_TRAFFIC_EXPERT_FSDP, MS_STREAM_REDUCE, false},
    {MS_TRAFFIC_REPLICATE, MS_STREAM_REDUCE, false},
    {MS_TRAFFIC_ALL, MS_STREAM_REDUCE, false},
    {MS_TRAFFIC_EXPERT_ALL, MS_STREAM_REDUCE, false},
    {MS_TRAFFIC_PP, MS_STREAM_REDUCE, false},
    {MS_TRAFFIC_WORLD, MS_STREAM_REDUCE, false},
};
#define NUM_TABLE_KINDS (int)(sizeof kind_table / sizeof *kind_table)
_Static_assert(sizeof kind_table / sizeof *kind_table <= MS_CUDA_MAX_KINDS,
               "room for all");

static bool has_one_rank_groups(const ms_world *world, int group)
{
    for (long rank = 0; rank < world->num_ranks; rank++)
        if (world->members[group][rank].size > 1)
            return false;
    return true;
}

/* Whether groups of kinds `a` and `b` have equal members in equal order on every rank. */
static bool have_same_members(const ms_world *world, int a, int b)
{
    for (long rank = 0; rank < world->num_ranks; rank++) {
        const ms_members *x = &world->members[a][rank], *y = &world->members[b][rank];
        if (x->size != y->size)
            return false;
        for (int i = 0; i < x->size; i++)
            if (x->ranks[i] != y->ranks[i])
                return false;
    }
    return true;
}

static bool is_world(const ms_world *world, int group)
{
    const ms_members *members = &world->members[group][0];
    for (int i = 0; i < members->size; i++)
        if (members->ranks[i] != i)
            return false;
    return members->size == world->num_ranks;
}

static int find_kind(const ms_cuda_channels *c, const ms_world *world,
                     const ms_cuda_kind *kind)
{
    for (int i = 0; i < c->num_kinds; i++)
        if (c->kinds[i].stream == kind->stream &&
            have_same_members(world, c->kinds[i].group, kind->group))
            return i;
    return -1;
}

static void add_kinds(ms_cuda_channels *c, const ms_world *world)
{
    bool world_is_used = false;
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++)
        for (int s = 0; s < MS_NUM_STREAMS; s++)
            c->kind_of[g][s] = -1;
    for (int i = 0; i < NUM_TABLE_KINDS; i++) {
        ms_cuda_kind kind = kind_table[i];
        if (has_one_rank_groups(world, kind.group))
            continue;
        int at = find_kind(c, world, &kind);
        if (at < 0) {
            kind.is_world = !world_is_used && is_world(world, kind.group);
            world_is_used = world_is_used || kind.is_world;
            at = c->num_kinds++;
            c->kinds[at] = kind;
        }
        c->kind_of[kind.group][kind.stream] = at;
    }
    /* in reverse, so that a group's first communicator serves its other streams */
    for (int i = NUM_TABLE_KINDS; i-- > 0;) {
        int at = c->kind_of[kind_table[i].group][kind_table[i].stream];
        for (int s = 0; s < MS_NUM_STREAMS && at >= 0; s++) {
            bool has_own = false;
            for (int j = 0; j < NUM_TABLE_KINDS; j++)
                has_own = has_own || (kind_table[j].group == kind_table[i].group &&
                                      kind_table[j].stream == s);
            if (!has_own)
                c->kind_of[kind_table[i].group][s] = at;
        }
    }
}

/* ---- messages ---- */

static void add_channel(ms_cuda_channels *c, long from, long to)
{
    if (from == to)
        return;
    for (long i = c->num_channels; i-- > 0 && c->channels[i].from == from;)
        if (c->channels[i].to == to)
            return;
    c->channels[c->num_channels++] = (ms_cuda_channel){from, to, 0};
}

#define MAX_CHANNELS_OF_SENDER 4

/* Adds the channels on which `rank` sends, one after another in c->channels. */
static void add_channels_of(ms_cuda_channels *c, const ms_world *world, long rank)
{
    const ms_members *pp = &world->members[MS_TRAFFIC_PP][rank];
    const ms_members *cp = &world->members[MS_TRAFFIC_CP][rank];
    add_channel(c, rank, pp->ranks[(pp->own + 1) % pp->size]);
    add_channel(c, rank, pp->ranks[(pp->own + pp->size - 1) % pp->size]);
    add_channel(c, rank, pp->ranks[pp->size - 1 - pp->own]);
    add_channel(c, rank, cp->ranks[(cp->own + 1) % cp->size]);
}

/* Sets each channel's round: the first split in which its two ranks have no channel. */
static void find_rounds(ms_arena *arena, ms_cuda_channels *c, const ms_world *world)
{
    unsigned long *taken = MS_NEW_ARRAY(arena, world->num_ranks, unsigned long);
    for (long i = 0; i < c->num_channels; i++) {
        ms_cuda_channel *channel = &c->channels[i];
        unsigned long both = taken[channel->from] | taken[channel->to];
        /* a rank has at most 8 channels: 7 others of each end take at most 14 rounds */
        assert(~both != 0);
        channel->round = __builtin_ctzl(~both);
        taken[channel->from] |= 1UL << channel->round;
        taken[channel->to] |= 1UL << channel->round;
        if (channel->round >= c->num_rounds)
            c->num_rounds = channel->round + 1;
    }
}

static int by_round(const void *a, const void *b)
{
    const ms_cuda_channel *x = a, *y = b;
    if (x->round != y->round)
        return x->round - y->round;
    return (x->from > y->from) - (x->from < y->from);
}

ms_cuda_channels ms_cuda_channels_make(ms_arena *arena, const ms_world *world)
{
    ms_cuda_channels c = {.num_kinds = 0};
    add_kinds(&c, world);
    c.channels =
        MS_NEW_ARRAY(arena, MAX_CHANNELS_OF_SENDER * world->num_ranks, ms_cuda_channel);
    for (long rank = 0; rank < world->num_ranks; rank++)
        add_channels_of(&c, world, rank);
    find_rounds(arena, &c, world);
    if (c.num_channels > 0)
        qsort(c.channels, (size_t)c.num_channels, sizeof *c.channels, by_round);
    return c;
}

long ms_cuda_channel_of(const ms_cuda_channels *channels, int round, long rank)
{
    for (long i = 0; i < channels->num_channels; i++) {
        const ms_cuda_channel *c = &channels->channels[i];
        if (c->round == round && (c->from == rank || c->to == rank))
            return i;
    }
    return -1;
}
