/* Tests of ranks' coordinates and groups in random plans with any legal order of axes,
 * and of each rank's part of a tensor, against the reference interpreter. */
#include "base/rng.h"
#include "exec/core/world.h"
#include "tests/support/interpreter_priv.h"
#include "tests/support/program_cases.h"

#include "tests/test.h"

#define NUM_PLANS  300
#define MOST_RANKS 64

/* ---- plans ---- */

static void draw_axes(ms_rng *rng, ms_plan *plan, bool has_experts)
{
    static const long sizes[] = {1, 2, 2, 4};
    plan->gpus = 1;
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++) {
        plan->size[i] = sizes[ms_rng_below(rng, i == MS_PP ? 3 : 4)];
        plan->gpus *= plan->size[i];
        plan->order[i] = (unsigned char)i;
    }
    for (int i = MS_NUM_PLAN_AXES - 1; i > 0; i--) {
        int j = (int)ms_rng_below(rng, (uint64_t)i + 1);
        unsigned char axis = plan->order[i];
        plan->order[i] = plan->order[j];
        plan->order[j] = axis;
    }
    plan->ep = has_experts ? sizes[ms_rng_below(rng, 4)] : 1;
    plan->etp = has_experts && ms_rng_below(rng, 2) == 0 ? plan->size[MS_TP] : 1;
}

static ms_plan draw_plan(ms_rng *rng, const ms_model *model)
{
    for (;;) {
        ms_plan plan = ms_plan_default(1);
        draw_axes(rng, &plan, model->moe.num_experts > 0);
        plan.sequence_length = MS_SMALL_SEQUENCE;
        plan.microbatch = MS_CASE_MICROBATCH;
        plan.global_batch = 8 * plan.microbatch * ms_plan_data_parallel(&plan);
        plan.zero = 0;
        plan.sequence_parallel = plan.size[MS_TP] > 1 && ms_rng_below(rng, 2) == 0;
        plan.loss_parallel = ms_rng_below(rng, 2) == 0;
        plan.cp_method = (ms_cp_method)ms_rng_below(rng, MS_NUM_CP_METHODS);
        plan.schedule = MS_GPIPE;
        if (plan.gpus <= MOST_RANKS && ms_plan_refusal(&plan, model) == MS_LEGAL)
            return plan;
    }
}

/* ---- groups ---- */

/* A rank's coordinate `at` on one axis of `size` ranks. */
typedef struct coordinates {
    long size, at;
} coordinates;

static int own_axes(const ms_world *world, const ms_place *p, int group, coordinates *out)
{
    const long *size = world->plan->size;
    coordinates pp = {size[MS_PP], p->pp},
                replicate = {size[MS_DP_REPLICATE], p->dp_replicate},
                shard = {size[MS_DP_SHARD], p->dp_shard}, cp = {size[MS_CP], p->cp},
                tp = {size[MS_TP], p->tp}, ep = {world->ep, p->ep},
                efsdp = {world->edp / size[MS_DP_REPLICATE], p->efsdp};
    const coordinates axes[MS_NUM_TRAFFIC_GROUPS][MS_NUM_PLAN_AXES] = {
        [MS_TRAFFIC_TP] = {tp},
        [MS_TRAFFIC_CP] = {cp},
        [MS_TRAFFIC_EP] = {ep},
        [MS_TRAFFIC_FSDP] = {shard, cp},
        [MS_TRAFFIC_EXPERT_FSDP] = {efsdp},
        [MS_TRAFFIC_REPLICATE] = {replicate},
        [MS_TRAFFIC_ALL] = {replicate, shard, cp},
        [MS_TRAFFIC_EXPERT_ALL] = {replicate, efsdp},
        [MS_TRAFFIC_PP] = {pp},
        [MS_TRAFFIC_WORLD] = {pp, replicate, shard, cp, tp},
    };
    int num = 0;
    for (; num < MS_NUM_PLAN_AXES && axes[group][num].size > 0; num++)
        out[num] = axes[group][num];
    return num;
}

/* Encodes the coordinates of a rank on all axes but those of a group: equal for the
 * group's members only. */
static long others(const ms_world *world, const ms_place *p, int group)
{
    const long *size = world->plan->size;
    long dense = (p->dp_shard * world->cp + p->cp) * world->tp + p->tp,
         outer = p->pp * size[MS_DP_REPLICATE] + p->dp_replicate,
         shared = size[MS_DP_SHARD] * world->cp * world->tp;
    switch ((ms_traffic_group)group) {
    case MS_TRAFFIC_TP:
        return (outer * shared + dense) / world->tp;
    case MS_TRAFFIC_CP:
        return (outer * size[MS_DP_SHARD] + p->dp_shard) * world->tp + p->tp;
    case MS_TRAFFIC_EP:
        return (outer * shared + p->efsdp) * world->etp + p->etp;
    case MS_TRAFFIC_FSDP:
        return outer * world->tp + p->tp;
    case MS_TRAFFIC_EXPERT_FSDP:
        return (outer * world->ep + p->ep) * world->etp + p->etp;
    case MS_TRAFFIC_REPLICATE:
        return p->pp * shared + dense;
    case MS_TRAFFIC_ALL:
        return p->pp * world->tp + p->tp;
    case MS_TRAFFIC_EXPERT_ALL:
        return (p->pp * world->ep + p->ep) * world->etp + p->etp;
    case MS_TRAFFIC_PP:
        return p->dp_replicate * shared + dense;
    case MS_TRAFFIC_SECONDARY: /* runs form no groups of copies */
    case MS_TRAFFIC_EXPERT_SECONDARY:
    case MS_TRAFFIC_WORLD:
    case MS_NUM_TRAFFIC_GROUPS:
        break;
    }
    return 0;
}

static void check_group(const ms_world *world, int group, long rank)
{
    const ms_members *members = &world->members[group][rank];
    coordinates axes[MS_NUM_PLAN_AXES];
    int num_axes = own_axes(world, &world->places[rank], group, axes);
    long size = 1, own = 0;
    for (int i = 0; i < num_axes; i++) {
        size *= axes[i].size;
        own = own * axes[i].size + axes[i].at;
    }
    ASSERT_INT(members->size, size);
    ASSERT_INT(members->own, own);
    ASSERT_INT(members->ranks[own], rank);
    for (int i = 0; i < members->size; i++) {
        long other = members->ranks[i];
        assert_ptr_equal(world->members[group][other].ranks, members->ranks);
        ASSERT_INT(others(world, &world->places[other], group),
                   others(world, &world->places[rank], group));
    }
}

static void check_place(const ms_world *world, const ms_mesh *mesh, long rank)
{
    const ms_place *p = &world->places[rank];
    const long at[MS_NUM_PLAN_AXES] = {p->pp, p->dp_replicate, p->dp_shard, p->cp, p->tp};
    long made = 0;
    for (int i = 0; i < mesh->num_axes; i++)
        made += at[world->plan->order[i]] * mesh->axes[i].stride;
    ASSERT_INT(p->rank, rank);
    ASSERT_INT(made, rank);
    ASSERT_INT((p->dp * world->cp + p->cp) * world->tp + p->tp,
               (p->edp * world->ep + p->ep) * world->etp + p->etp);
}

static void groups_share_out_the_ranks_by_coordinates(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(11);
    ms_model model = ms_small_mixtral();
    long num_in_other_orders = 0;
    for (int i = 0; i < NUM_PLANS; i++) {
        ms_arena *arena = ms_arena_open();
        ms_plan plan = draw_plan(&rng, &model);
        ms_world world = ms_world_make(arena, &plan);
        ms_mesh mesh = ms_plan_mesh(&plan);
        ASSERT_INT(world.num_ranks, plan.gpus);
        for (long rank = 0; rank < world.num_ranks; rank++) {
            check_place(&world, &mesh, rank);
            for (int group = 0; group < MS_NUM_TRAFFIC_GROUPS; group++)
                check_group(&world, group, rank);
            const ms_members *all = &world.members[MS_TRAFFIC_WORLD][rank];
            num_in_other_orders += all->own != rank;
        }
        ms_arena_close(arena);
    }
    assert_true(num_in_other_orders > 100);
}

/* ---- parts ---- */

static void check_part(const ms_world *world, ms_interp *run, int tensor, long rank)
{
    const ms_tensor *t = &run->program->tensors[tensor];
    const ms_place *p = &world->places[rank];
    int linear = (int)((p->dp * world->cp + p->cp) * world->tp + p->tp);
    ms_box want = ms_interp_box(run, tensor, linear);
    ms_local got = ms_world_local(world, run->program, tensor, p);
    ASSERT_INT(got.num_dims, want.num_dims);
    long count = 1;
    for (int i = 0; i < got.num_dims; i++) {
        ASSERT_INT(got.shape[i], want.len[i]);
        ASSERT_INT(got.start[i], t->dims[i] == MS_DIM_ROWS ? 0 : want.start[i]);
        count *= got.shape[i];
    }
    assert_null(got.data);
    ASSERT_INT(got.count, count);
    ASSERT_NEAR(got.bytes, (double)count * t->element_bytes, 0);
}

static long check_parts(ms_arena *arena, const ms_world *world, const ms_model *model,
                        int part)
{
    const ms_plan *plan = world->plan;
    ms_program_key key = ms_case_whole_key((ms_block_kind)part);
    key.tp = (short)world->tp;
    key.cp = (short)world->cp;
    key.ep = (short)world->ep;
    key.etp = (short)world->etp;
    key.sequence_parallel = plan->sequence_parallel;
    key.loss_parallel = plan->loss_parallel;
    key.cp_method = (unsigned char)ms_plan_cp_method(plan);
    const ms_program *program = ms_case_program(arena, model, &key, world->dp);
    ms_interp run = {.program = program, .num_ranks = (int)world->num_ranks};
    long num_strided = 0;
    for (int tensor = 0; tensor < program->num_tensors; tensor++) {
        for (long rank = 0; rank < world->num_ranks; rank++)
            check_part(world, &run, tensor, rank);
        for (int axis = 0; axis < MS_MESH_AXES; axis++)
            num_strided += program->tensors[tensor].at[axis].split_factor > 1;
    }
    ASSERT_TEXT(run.why, "");
    return num_strided;
}

static void parts_are_the_interpreters(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(12);
    long num_strided = 0;
    for (int i = 0; i < NUM_PLANS / 3; i++) {
        ms_arena *arena = ms_arena_open();
        ms_model model = ms_case_model(i % (MS_NUM_SMALL_DENSE + MS_NUM_SMALL_MOE));
        ms_plan plan = draw_plan(&rng, &model);
        ms_world world = ms_world_make(arena, &plan);
        for (int part = 0; part < MS_NUM_BLOCK_KINDS; part++)
            num_strided += check_parts(arena, &world, &model, part);
        ms_arena_close(arena);
    }
    ASSERT_INT(ms_case_num_wrong(), 0);
    assert_true(num_strided > 0);
}

/* A priced program has one data-parallel rank: its tensors are not split over dp, and
 * begin at the rank's own micro-batch. */
static void axes_that_a_program_lacks_do_not_split(void **state)
{
    (void)state;
    ms_model model = ms_small_llama();
    ms_plan plan = ms_plan_default(8);
    plan.size[MS_TP] = 2;
    ms_plan_fill_defaults(&plan);
    ms_arena *arena = test_cx()->arena;
    ms_world world = ms_world_make(arena, &plan);
    ms_program_key key = ms_case_whole_key(MS_BLOCK_LAYER);
    key.tp = 2;
    const ms_program *program = ms_case_program(arena, &model, &key, 1);
    ms_local part = ms_world_local(&world, program, program->input, &world.places[7]);
    ASSERT_INT(world.dp, 4);
    ASSERT_INT(part.shape[0], MS_CASE_MICROBATCH);
    ASSERT_INT(part.start[0], 0);
}

/* ---- collectives of nodes ---- */

static void nodes_communicate_in_the_groups_of_the_traffic(void **state)
{
    (void)state;
    static const struct {
        ms_mesh_kind mesh;
        int axis;
        ms_traffic_group want;
    } cases[] = {{MS_DENSE_MESH, 1, MS_TRAFFIC_CP},
                 {MS_DENSE_MESH, 2, MS_TRAFFIC_TP},
                 {MS_SPARSE_MESH, 1, MS_TRAFFIC_EP},
                 /* expert tensor parallelism etp is 1 or tp */
                 {MS_SPARSE_MESH, 2, MS_TRAFFIC_TP}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_node_comm comm = {.mesh = cases[i].mesh, .axis = cases[i].axis};
        ASSERT_INT(ms_world_group(&comm), cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_share_out_the_ranks_by_coordinates),
        cmocka_unit_test_setup(parts_are_the_interpreters, ms_case_start),
        cmocka_unit_test_setup(axes_that_a_program_lacks_do_not_split, ms_case_start),
        cmocka_unit_test(nodes_communicate_in_the_groups_of_the_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
