#include "exec/cuda_channels.h"

#include <assert.h>
#include <stdlib.h>

/* ---- groups ---- */

/* Streams that use a group at the same time (exec/unit_moves.c, exec/unit_gradients.c,
 * exec/lower.c). What comes on another stream shares the first. */
static const ms_cuda_kind wanted[] = {
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
#define NUM_WANTED (int)(sizeof wanted / sizeof *wanted)
_Static_assert(sizeof wanted / sizeof *wanted <= MS_CUDA_MAX_KINDS, "room for all");

static bool is_alone(const ms_world *world, int group)
{
    for (long rank = 0; rank < world->num_ranks; rank++)
        if (world->members[group][rank].size > 1)
            return false;
    return true;
}

/* Members come in an order that depends on the set alone. */
static bool are_same(const ms_world *world, int a, int b)
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
            are_same(world, c->kinds[i].group, kind->group))
            return i;
    return -1;
}

static void add_kinds(ms_cuda_channels *c, const ms_world *world)
{
    bool world_taken = false;
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++)
        for (int s = 0; s < MS_NUM_STREAMS; s++)
            c->kind_of[g][s] = -1;
    for (int i = 0; i < NUM_WANTED; i++) {
        ms_cuda_kind kind = wanted[i];
        if (is_alone(world, kind.group))
            continue;
        int at = find_kind(c, world, &kind);
        if (at < 0) {
            kind.is_world = !world_taken && is_world(world, kind.group);
            world_taken = world_taken || kind.is_world;
            at = c->num_kinds++;
            c->kinds[at] = kind;
        }
        c->kind_of[kind.group][kind.stream] = at;
    }
    for (int i = NUM_WANTED; i-- > 0;) { /* the first of a group is written last */
        int at = c->kind_of[wanted[i].group][wanted[i].stream];
        for (int s = 0; s < MS_NUM_STREAMS && at >= 0; s++) {
            bool own = false;
            for (int j = 0; j < NUM_WANTED; j++)
                own =
                    own || (wanted[j].group == wanted[i].group && wanted[j].stream == s);
            if (!own)
                c->kind_of[wanted[i].group][s] = at;
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

#define MOST_OF_A_RANK 4

/* Channels of a sender one after the other. */
static void add_channels_of(ms_cuda_channels *c, const ms_world *world, long rank)
{
    const ms_members *pp = &world->members[MS_TRAFFIC_PP][rank];
    const ms_members *cp = &world->members[MS_TRAFFIC_CP][rank];
    add_channel(c, rank, pp->ranks[(pp->own + 1) % pp->size]);
    add_channel(c, rank, pp->ranks[(pp->own + pp->size - 1) % pp->size]);
    add_channel(c, rank, pp->ranks[pp->size - 1 - pp->own]);
    add_channel(c, rank, cp->ranks[(cp->own + 1) % cp->size]);
}

/* Each gets the first round in which both of its ranks are free. */
static void find_rounds(ms_arena *arena, ms_cuda_channels *c, const ms_world *world)
{
    unsigned long *taken = MS_NEW_ARRAY(arena, world->num_ranks, unsigned long);
    for (long i = 0; i < c->num_channels; i++) {
        ms_cuda_channel *channel = &c->channels[i];
        unsigned long both = taken[channel->from] | taken[channel->to];
        assert(~both != 0); /* a rank has 8 channels at most: others take 14 rounds */
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
    c.channels = MS_NEW_ARRAY(arena, MOST_OF_A_RANK * world->num_ranks, ms_cuda_channel);
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
