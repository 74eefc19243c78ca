/* Tests of a plan's NCCL communicators: all ranks derive the same list, every group has
 * its communicator, and any two ranks that exchange messages have one in each
 * direction. */
#include "exec/cuda/cuda_channels.h"
#include "tests/support/transfer_checks.h"

#include "base/rng.h"
#include "tests/test.h"

static ms_plan *plan_of(ms_ctx *cx, const long size[MS_NUM_PLAN_AXES], long ep)
{
    ms_plan *plan = MS_NEW(cx->arena, ms_plan);
    *plan = ms_check_plan(size, ep);
    return plan;
}

static ms_world world_of(ms_ctx *cx, const long size[MS_NUM_PLAN_AXES], long ep)
{
    return ms_world_make(cx->arena, plan_of(cx, size, ep));
}

/* Draws what decides which communicators a plan needs. */
static void draw_options(ms_rng *rng, ms_plan *plan)
{
    static const ms_schedule_kind kinds[] = {MS_1F1B, MS_INTERLEAVED, MS_DUALPIPE,
                                             MS_ZB_V};
    static const ms_cp_method methods[] = {MS_CP_ALL_GATHER, MS_CP_RING};
    plan->zero = (long)ms_rng_below(rng, 4);
    plan->async_tp = ms_rng_below(rng, 2) == 0;
    plan->cp_method = methods[ms_rng_below(rng, 2)];
    if (plan->size[MS_PP] % 2 == 0)
        plan->schedule = kinds[ms_rng_below(rng, 4)];
    plan->virtual_stages =
        plan->schedule == MS_INTERLEAVED || plan->schedule == MS_ZB_V ? 2 : 1;
}

static bool same_members(const ms_world *w, int a, int b)
{
    for (long rank = 0; rank < w->num_ranks; rank++) {
        const ms_members *x = &w->members[a][rank], *y = &w->members[b][rank];
        if (x->size != y->size ||
            memcmp(x->ranks, y->ranks, (size_t)x->size * sizeof *x->ranks) != 0)
            return false;
    }
    return true;
}

/* Whether runs move data between GPUs over the group. */
static bool is_used(const ms_plan *plan, int group)
{
    bool by_zero_0 = group == MS_TRAFFIC_ALL || group == MS_TRAFFIC_EXPERT_ALL;
    bool by_sharding = group == MS_TRAFFIC_FSDP || group == MS_TRAFFIC_EXPERT_FSDP ||
                       group == MS_TRAFFIC_REPLICATE;
    if (group == MS_TRAFFIC_PP || group == MS_TRAFFIC_WORLD)
        return false;
    return (!by_zero_0 || plan->zero == 0) && (!by_sharding || plan->zero != 0);
}

/* Checks that each stream's transfers of a group use a communicator of exactly the
 * group's members. */
static void check_kinds(const ms_world *w, const ms_cuda_channels *c)
{
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++) {
        bool alone = true;
        for (long rank = 0; rank < w->num_ranks; rank++)
            alone = alone && w->members[g][rank].size == 1;
        for (int s = 0; s < MS_NUM_STREAMS; s++) {
            int kind = c->kind_of[g][s];
            assert_true((kind < 0) == (alone || !is_used(w->plan, g)));
            assert_true(kind < c->num_kinds);
            assert_true(kind < 0 || same_members(w, g, c->kinds[kind].group));
        }
        int gather = c->kind_of[MS_TRAFFIC_FSDP][MS_STREAM_GATHER];
        assert_true(gather < 0 ||
                    gather != c->kind_of[MS_TRAFFIC_FSDP][MS_STREAM_REDUCE]);
    }
    for (int i = 0; i < c->num_kinds; i++) {
        bool alone = true; /* whether no other kind uses the stream */
        for (int j = 0; j < c->num_kinds; j++)
            alone = alone && (j == i || c->kinds[j].stream != c->kinds[i].stream);
        assert_true(c->kinds[i].shares == !alone);
        assert_true(c->shares[c->kinds[i].stream] == !alone);
        /* no two communicators of one stream have equal members */
        for (int j = 0; j < i; j++)
            assert_true(c->kinds[i].stream != c->kinds[j].stream ||
                        !same_members(w, c->kinds[i].group, c->kinds[j].group));
    }
}

static long find_channel(const ms_cuda_channels *c, long from, long to)
{
    long found = -1;
    for (long i = 0; i < c->num_channels; i++) {
        if (c->channels[i].from != from || c->channels[i].to != to)
            continue;
        assert_true(found < 0); /* a pair of ranks has one communicator */
        found = i;
    }
    return found;
}

static void expect_channel(const ms_cuda_channels *c, long from, long to)
{
    if (from != to)
        assert_true(find_channel(c, from, to) >= 0);
}

static void check_channels(const ms_world *w, const ms_cuda_channels *c)
{
    const ms_schedule_shape shape = ms_plan_shape(w->plan);
    int num_stages = ms_schedule_stages(&shape), most = 0;
    for (long rank = 0; rank < w->num_ranks; rank++) {
        const ms_members *pp = &w->members[MS_TRAFFIC_PP][rank];
        const ms_members *cp = &w->members[MS_TRAFFIC_CP][rank];
        const ms_members *tp = &w->members[MS_TRAFFIC_TP][rank];
        int own = 0;
        if (ms_plan_cp_method(w->plan) == MS_CP_RING)
            expect_channel(c, rank, cp->ranks[(cp->own + 1) % cp->size]);
        if (w->plan->async_tp)
            expect_channel(c, rank, tp->ranks[(tp->own + 1) % tp->size]);
        for (int s = 0; s + 1 < num_stages; s++) {
            long here = pp->ranks[ms_schedule_rank(&shape, s)];
            long there = pp->ranks[ms_schedule_rank(&shape, s + 1)];
            if (ms_schedule_model_stage(&shape, s + 1) == 0)
                continue; /* the other copy of the model begins */
            expect_channel(c, here, there);
            expect_channel(c, there, here);
        }
        if (ms_schedule_placement(shape.kind) == MS_PLACE_BOTH_WAYS)
            expect_channel(c, rank, pp->ranks[pp->size - 1 - pp->own]);
        for (long i = 0; i < c->num_channels; i++)
            own += c->channels[i].from == rank || c->channels[i].to == rank;
        most = own > most ? own : most;
    }
    ASSERT_INT(c->most_channels, most);
    for (int round = 0; round < c->num_rounds; round++) {
        for (long rank = 0; rank < w->num_ranks; rank++) {
            long own = ms_cuda_channel_of(c, round, rank), num = 0;
            for (long i = 0; i < c->num_channels; i++)
                num += c->channels[i].round == round &&
                       (c->channels[i].from == rank || c->channels[i].to == rank);
            assert_true(num <= 1 && (own >= 0) == (num == 1));
        }
    }
    for (long i = 0; i < c->num_channels; i++)
        assert_true(c->channels[i].round >= 0 && c->channels[i].round < c->num_rounds);
}

/* Checks that one kernel of each stream and channel, and compute, fit on the GPU. */
static void check_ctas(const ms_cuda_channels *c)
{
    const int sms[] = {8, 13, 40, 108, 132, 148};
    for (size_t i = 0; i < sizeof sms / sizeof *sms; i++) {
        ms_cuda_ctas ctas;
        int users = c->num_streams + c->most_channels;
        bool fits = ms_cuda_channels_ctas(c, sms[i], 20, &ctas);
        int held = c->num_streams * ctas.collective + c->most_channels * ctas.message;
        assert_true(fits == (users <= sms[i] - (sms[i] + 3) / 4));
        assert_true(!fits || (ctas.collective >= 1 && ctas.message >= 1));
        assert_true(held <= sms[i] - (sms[i] + 3) / 4);
        assert_true(ctas.collective <= 20);
    }
}

static void check(ms_rng *rng, const long size[MS_NUM_PLAN_AXES], long ep)
{
    ms_ctx *cx = test_cx();
    ms_plan *plan = plan_of(cx, size, ep);
    draw_options(rng, plan);
    ms_world world = ms_world_make(cx->arena, plan);
    ms_cuda_channels channels = ms_cuda_channels_make(cx->arena, &world);
    check_kinds(&world, &channels);
    check_channels(&world, &channels);
    check_ctas(&channels);
}

static void random_plans(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(20261122);
    for (int i = 0; i < 200; i++) {
        long size[MS_NUM_PLAN_AXES], num = 1;
        for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++) {
            size[axis] = 1 + (long)ms_rng_below(&rng, 4);
            num *= size[axis];
        }
        if (num > 128)
            continue;
        long ep = ms_rng_below(&rng, 2) == 0 ? 1 : size[2] * size[3] * size[4];
        check(&rng, size, ep);
    }
}

static void large_pipelines_take_few_rounds(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_world world = world_of(cx, (long[]){16, 1, 8, 4, 2}, 8);
    ms_cuda_channels channels = ms_cuda_channels_make(cx->arena, &world);
    /* each rank has at most 8 channels: 2 * 8 - 1 rounds suffice */
    assert_true(channels.num_rounds <= 15);
}

/* Messages between first and last stage, four stages apart, are gradients of one matrix. */
static void only_tied_ends_have_channels(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_world world = world_of(cx, (long[]){4, 1, 1, 1, 1}, 1);
    ms_cuda_channels apart = ms_cuda_channels_make(cx->arena, &world);
    world.ties_embeddings = true;
    ms_cuda_channels tied = ms_cuda_channels_make(cx->arena, &world);
    ASSERT_INT(apart.num_channels, 6);
    ASSERT_INT(tied.num_channels, 8);
    assert_true(find_channel(&apart, 0, 3) < 0 && find_channel(&apart, 3, 0) < 0);
    expect_channel(&tied, 0, 3);
    expect_channel(&tied, 3, 0);
}

/* A connection's buffers: 4 MiB simple, 0.5 MiB LL, 4.6875 MiB LL128. */
static void communicators_take_memory(void **state)
{
    (void)state;
    const double connection_bytes = 9.1875 * 1048576.0;
    ms_ctx *cx = test_cx();
    ms_plan *plan = plan_of(cx, (long[]){3, 1, 2, 1, 2}, 1);
    plan->zero = 3;
    ms_world world = ms_world_make(cx->arena, plan);
    ms_cuda_channels channels = ms_cuda_channels_make(cx->arena, &world);
    const ms_cuda_ctas ctas = {.collective = 10, .message = 2};
    for (long rank = 0; rank < world.num_ranks; rank++) {
        ms_cuda_comm_memory m = ms_cuda_channels_memory(&channels, &world, rank, &ctas);
        /* tp, gathers and reductions of dense and of expert parameters, which are over
         * other ranks; for splits two by stream and the world's; messages to and from
         * each neighbour */
        int neighbours = world.places[rank].pp == 1 ? 2 : 1;
        ASSERT_INT(m.num, 5 + 3 + 2 * neighbours);
        ASSERT_NEAR(m.buffer_bytes, (5 * 10 + 2 * neighbours) * connection_bytes, 0.0);
    }
    ms_world alone = world_of(cx, (long[]){1, 1, 1, 1, 1}, 1);
    channels = ms_cuda_channels_make(cx->arena, &alone);
    ms_cuda_comm_memory none = ms_cuda_channels_memory(&channels, &alone, 0, &ctas);
    assert_true(none.num == 0 && none.buffer_bytes == 0.0);
}

static void one_rank_needs_none(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_world world = world_of(cx, (long[]){1, 1, 1, 1, 1}, 1);
    ms_cuda_channels channels = ms_cuda_channels_make(cx->arena, &world);
    ASSERT_INT(channels.num_kinds, 0);
    ASSERT_INT(channels.num_channels, 0);
    ASSERT_INT(channels.num_rounds, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_plans),
        cmocka_unit_test(large_pipelines_take_few_rounds),
        cmocka_unit_test(one_rank_needs_none),
        cmocka_unit_test(only_tied_ends_have_channels),
        cmocka_unit_test(communicators_take_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
