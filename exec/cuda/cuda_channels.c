#include "exec/cuda/cuda_channels.h"

#include <assert.h>
#include <stdlib.h>

/* ---- groups ---- */

/* Kinds of group and stream with a communicator of their own, because they communicate at
 * the same time (exec/params/unit_moves.c, unit_gradients.c, exec/lower/lower.c). On
 * other streams a group uses the communicator of its first entry here. */
static const ms_cuda_kind kind_table[] = {
    {MS_TRAFFIC_TP, MS_STREAM_TP, true, false},
    {MS_TRAFFIC_CP, MS_STREAM_CP, true, false},
    {MS_TRAFFIC_EP, MS_STREAM_EP, true, false},
    {MS_TRAFFIC_FSDP, MS_STREAM_GATHER, false, false},
    {MS_TRAFFIC_FSDP, MS_STREAM_REDUCE, false, false},
    {MS_TRAFFIC_EXPERT_FSDP, MS_STREAM_GATHER, false, false},
    {MS_TRAFFIC_EXPERT_FSDP, MS_STREAM_REDUCE, false, false},
    {MS_TRAFFIC_REPLICATE, MS_STREAM_REDUCE, false, false},
    {MS_TRAFFIC_ALL, MS_STREAM_REDUCE, false, false},
    {MS_TRAFFIC_EXPERT_ALL, MS_STREAM_REDUCE, false, false},
};
#define NUM_TABLE_KINDS (int)(sizeof kind_table / sizeof *kind_table)
_Static_assert(sizeof kind_table / sizeof *kind_table <= MS_CUDA_MAX_KINDS,
               "room for all");

/* Whether ranks move data between GPUs over the group: replicated parameters are reduced
 * over all their copies, sharded ones over shards and then over replicas. */
static bool is_used(const ms_plan *plan, int group)
{
    bool replicated = plan->zero == 0;
    if (group == MS_TRAFFIC_ALL || group == MS_TRAFFIC_EXPERT_ALL)
        return replicated;
    return group < MS_TRAFFIC_FSDP || !replicated;
}

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

static int find_kind(const ms_cuda_channels *c, const ms_world *world,
                     const ms_cuda_kind *kind)
{
    for (int i = 0; i < c->num_kinds; i++)
        if (c->kinds[i].stream == kind->stream &&
            have_same_members(world, c->kinds[i].group, kind->group))
            return i;
    return -1;
}

/* Counts the streams with kinds, and lets the kinds of one stream share. */
static void share_streams(ms_cuda_channels *c)
{
    for (int s = 0; s < MS_NUM_STREAMS; s++) {
        int num = 0;
        for (int i = 0; i < c->num_kinds; i++)
            num += c->kinds[i].stream == s;
        c->num_streams += num > 0;
        c->shares[s] = num > 1;
    }
    for (int i = 0; i < c->num_kinds; i++)
        c->kinds[i].shares = c->shares[c->kinds[i].stream];
}

static void add_kinds(ms_cuda_channels *c, const ms_world *world)
{
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++)
        for (int s = 0; s < MS_NUM_STREAMS; s++)
            c->kind_of[g][s] = -1;
    for (int i = 0; i < NUM_TABLE_KINDS; i++) {
        ms_cuda_kind kind = kind_table[i];
        if (!is_used(world->plan, kind.group) || has_one_rank_groups(world, kind.group))
            continue;
        int at = find_kind(c, world, &kind);
        if (at < 0) {
            at = c->num_kinds++;
            c->kinds[at] = kind;
        }
        c->kind_of[kind.group][kind.stream] = at;
    }
    share_streams(c);
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

/* Messages to further ranks go through host memory: each channel takes one of 32 hardware
 * queues. A choice, not measured. */
#define MAX_CHANNELS_EACH_WAY 4

/* Channels being listed: for each rank those it sends on, and how many it receives on. */
typedef struct channel_list {
    ms_cuda_channels *c;
    bool ties_ends; /* first and last stage have one matrix */
    struct sender {
        int num;
        long to[MAX_CHANNELS_EACH_WAY];
    } * senders;   /* (num_ranks) */
    int *receives; /* (num_ranks) */
} channel_list;

static void add_channel(channel_list *l, long from, long to)
{
    struct sender *sender = &l->senders[from];
    for (int i = 0; i < sender->num; i++)
        if (sender->to[i] == to)
            return;
    if (from == to || sender->num == MAX_CHANNELS_EACH_WAY ||
        l->receives[to] == MAX_CHANNELS_EACH_WAY)
        return;
    sender->to[sender->num++] = to;
    l->receives[to]++;
    l->c->channels[l->c->num_channels++] = (ms_cuda_channel){from, to, 0};
}

static void add_both_ways(channel_list *l, long a, long b)
{
    add_channel(l, a, b);
    add_channel(l, b, a);
}

/* Adds the channels of one pipeline: between neighbouring stages, between copies of a
 * stage, and between first and last stage if they have one matrix. */
static void add_pipeline(channel_list *l, const ms_plan *plan, const ms_members *pp)
{
    const ms_schedule_shape shape = ms_plan_shape(plan);
    int num = ms_schedule_model_stages(&shape), copies = ms_schedule_stages(&shape) / num;
    for (int s = 0; s + 1 < num * copies; s++) {
        if (ms_schedule_model_stage(&shape, s) == num - 1)
            continue;
        add_both_ways(l, pp->ranks[ms_schedule_rank(&shape, s)],
                      pp->ranks[ms_schedule_rank(&shape, s + 1)]);
    }
    if (l->ties_ends)
        add_both_ways(l, pp->ranks[ms_schedule_rank(&shape, 0)],
                      pp->ranks[ms_schedule_rank(&shape, num - 1)]);
    for (int own = 0; copies > 1 && own < pp->size; own++)
        add_channel(l, pp->ranks[own], pp->ranks[pp->size - 1 - own]);
}

static void add_ring(channel_list *l, const ms_members *ring)
{
    for (int i = 0; i < ring->size; i++)
        add_channel(l, ring->ranks[i], ring->ranks[(i + 1) % ring->size]);
}

static void add_channels(ms_arena *arena, ms_cuda_channels *c, const ms_world *world)
{
    const ms_plan *plan = world->plan;
    channel_list l = {c, world->ties_embeddings,
                      MS_NEW_ARRAY(arena, world->num_ranks, struct sender),
                      MS_NEW_ARRAY(arena, world->num_ranks, int)};
    c->channels =
        MS_NEW_ARRAY(arena, MAX_CHANNELS_EACH_WAY * world->num_ranks, ms_cuda_channel);
    for (long rank = 0; rank < world->num_ranks; rank++) {
        const ms_members *pp = &world->members[MS_TRAFFIC_PP][rank],
                         *cp = &world->members[MS_TRAFFIC_CP][rank],
                         *tp = &world->members[MS_TRAFFIC_TP][rank];
        if (pp->own == 0 && pp->size > 1)
            add_pipeline(&l, plan, pp);
        if (cp->own == 0 && ms_plan_cp_method(plan) == MS_CP_RING)
            add_ring(&l, cp);
        if (tp->own == 0 && plan->async_tp)
            add_ring(&l, tp);
    }
    for (long rank = 0; rank < world->num_ranks; rank++)
        if (l.senders[rank].num + l.receives[rank] > c->most_channels)
            c->most_channels = l.senders[rank].num + l.receives[rank];
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
    add_channels(arena, &c, world);
    find_rounds(arena, &c, world);
    if (c.num_channels > 0)
        qsort(c.channels, (size_t)c.num_channels, sizeof *c.channels, by_round);
    return c;
}

/* ---- multiprocessors ---- */

/* Most blocks of a kernel by NCCL itself: its user guide, ncclConfig_t, maxCTAs. */
#define MOST_CTAS 32
/* Most blocks of a message. NCCL gives two channels to a peer over the network by default
 * (NCCL_NCHANNELS_PER_NET_PEER); twice as many serve links inside a node. Not measured. */
#define MESSAGE_CTAS 4
/* 1 / share of the multiprocessors that stay free for compute. One of them is enough for
 * kernels to end; the rest is a choice, not measured. */
#define COMPUTE_SHARE 4

bool ms_cuda_channels_ctas(const ms_cuda_channels *c, int num_sms, int most,
                           ms_cuda_ctas *out)
{
    int usable = num_sms - (num_sms + COMPUTE_SHARE - 1) / COMPUTE_SHARE;
    int users = c->num_streams + c->most_channels;
    int each = users > 0 ? usable / users : MOST_CTAS;
    out->message = each < MESSAGE_CTAS ? each : MESSAGE_CTAS;
    out->collective = MOST_CTAS;
    if (c->num_streams > 0)
        out->collective = (usable - c->most_channels * out->message) / c->num_streams;
    if (out->collective > MOST_CTAS)
        out->collective = MOST_CTAS;
    if (most > 0 && out->collective > most)
        out->collective = most;
    return out->message > 0 && out->collective > 0;
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

/* ---- memory ---- */

/* Default bytes of a connection's buffers by protocol: simple, DEFAULT_BUFFSIZE; LL, lines
 * of 16 bytes for 8 lines x 512 threads x 8 steps; LL128, 8-byte elements for 120 elements
 * x 640 threads x 8 steps. The receiver allocates all three for each channel. Source: NCCL,
 * src/init.cc (computeBuffSizes), src/include/device.h, src/transport/p2p.cc and net.cc
 * (recvSetup, recvConnect). */
#define SIMPLE_BYTES     4194304.0
#define LL_BYTES         (8.0 * 512.0 * 8.0 * 16.0)
#define LL128_BYTES      (120.0 * 640.0 * 8.0 * 8.0)
#define CONNECTION_BYTES (SIMPLE_BYTES + LL_BYTES + LL128_BYTES)

ms_cuda_comm_memory ms_cuda_channels_memory(const ms_cuda_channels *c,
                                            const ms_world *world, long rank,
                                            const ms_cuda_ctas *ctas)
{
    ms_cuda_comm_memory out = {.num = world->num_ranks > 1};
    for (int s = 0; s < MS_NUM_STREAMS; s++)
        out.num += c->shares[s];
    for (int i = 0; i < c->num_kinds; i++) {
        if (world->members[c->kinds[i].group][rank].size == 1)
            continue;
        out.num++;
        out.buffer_bytes += ctas->collective * CONNECTION_BYTES;
    }
    for (long i = 0; i < c->num_channels; i++) {
        out.num += c->channels[i].from == rank || c->channels[i].to == rank;
        if (c->channels[i].to == rank)
            out.buffer_bytes += ctas->message * CONNECTION_BYTES;
    }
    return out;
}
