/* Tests of a plan's NCCL communicators: all ranks derive the same list, every group has
 * its communicator, and any two ranks that exchange messages have one in each
 * direction. */
#include "exec/cuda/cuda_channels.h"
#include "tests/support/transfer_checks.h"

#include "base/rng.h"
#include "tests/test.h"

static ms_world world_of(ms_ctx *cx, const long size[MS_NUM_PLAN_AXES], long ep)
{
    ms_plan *plan = MS_NEW(cx->arena, ms_plan);
    *plan = ms_check_plan(size, ep);
    return ms_world_make(cx->arena, plan);
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

/* Checks that each stream's transfers of a group use a communicator of exactly the
 * group's members. */
static void check_kinds(const ms_world *w, const ms_cuda_channels *c)
{
    int num_world = 0;
    for (int g = 0; g < MS_NUM_TRAFFIC_GROUPS; g++) {
        bool alone = true;
        for (long rank = 0; rank < w->num_ranks; rank++)
            alone = alone && w->members[g][rank].size == 1;
        for (int s = 0; s < MS_NUM_STREAMS; s++) {
            int kind = c->kind_of[g][s];
            assert_true((kind < 0) == alone);
            assert_true(kind < c->num_kinds);
            assert_true(kind < 0 || same_members(w, g, c->kinds[kind].group));
        }
        int gather = c->kind_of[MS_TRAFFIC_FSDP][MS_STREAM_GATHER];
        assert_true(gather < 0 ||
                    gather != c->kind_of[MS_TRAFFIC_FSDP][MS_STREAM_REDUCE]);
    }
    for (int i = 0; i < c->num_kinds; i++) {
        num_world += c->kinds[i].is_world;
        /* no two communicators of one stream have equal members */
        for (int j = 0; j < i; j++)
            assert_true(c->kinds[i].stream != c->kinds[j].stream ||
                        !same_members(w, c->kinds[i].group, c->kinds[j].group));
        for (long rank = 0; rank < w->num_ranks && c->kinds[i].is_world; rank++)
            ASSERT_INT(w->members[c->kinds[i].group][0].ranks[rank], rank);
    }
    assert_true(num_world <= 1);
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
    for (long rank = 0; rank < w->num_ranks; rank++) {
        const ms_members *pp = &w->members[MS_TRAFFIC_PP][rank];
        const ms_members *cp = &w->members[MS_TRAFFIC_CP][rank];
        long last = pp->size - 1;
        expect_channel(c, rank, cp->ranks[(cp->own + 1) % cp->size]);
        expect_channel(c, rank, pp->ranks[pp->own < last ? pp->own + 1 : 0]);
        expect_channel(c, rank, pp->ranks[pp->own > 0 ? pp->own - 1 : last]);
        expect_channel(c, rank, pp->ranks[last - pp->own]);
    }
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

static void check(const long size[MS_NUM_PLAN_AXES], long ep)
{
    ms_ctx *cx = test_cx();
    ms_world world = world_of(cx, size, ep);
    ms_cuda_channels channels = ms_cuda_channels_make(cx->arena, &world);
    check_kinds(&world, &channels);
    check_channels(&world, &channels);
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
        check(size, ep);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
