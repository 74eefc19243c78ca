/* The place of ranks on a cluster: the rule of even shares, by its definition; ten plans
 * for which mesh, predict, search and the routes of simulate state the same place; and
 * collectives that take the time of their cost law when nothing else uses the links. */
#include "base/rng.h"
#include "costmodel/cost/flows.h"
#include "sim/engine/event.h"
#include "sim/search/search.h"
#include "sim/simulate/simulation.h"
#include "sim/step/links.h"
#include "sim/step/prediction.h"
#include "topo/fabric.h"
#include "topo/mesh_place.h"

#include "tests/support/job_clusters.h"

/* ---- shares of domains ---- */

/* The rule, by its words: whole nodes, equally many in each domain, at least a quarter of
 * a domain; else domains are full. */
static long share_by_hand(long gpus, long domain, long node)
{
    long best = 0;
    for (long share = node; share <= domain; share += node)
        if (gpus % share == 0 && 4 * share >= domain)
            best = share;
    return gpus <= domain || best == 0 ? domain : best;
}

static void shares_are_the_largest_whole_nodes_that_divide(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        long domain, node;
    } rows[] = {{"gb200-nvl72", 72, 4}, {"tpu-v5e", 256, 4}, {"tpu-v4", 4096, 4}};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ms_cluster *cluster;
        ASSERT_OK(ms_cluster_load(cx, rows[i].name, &cluster), cx);
        for (long gpus = 1; gpus <= 20000; gpus += i == 0 ? 1 : 4)
            ASSERT_INT(ms_even_share(cluster, gpus),
                       share_by_hand(gpus, rows[i].domain, rows[i].node));
    }
    const ms_cluster *nodes;
    ASSERT_OK(ms_cluster_load(cx, "hgx-h100", &nodes), cx);
    for (long gpus = 1; gpus <= 100; gpus++) /* domains of one node are used in whole */
        ASSERT_INT(ms_even_share(nodes, gpus), 8);
}

static void expect_refused(const char *name, long ranks, const char *message)
{
    ms_ctx *cx = test_cx();
    const ms_cluster *cluster, *job;
    ASSERT_OK(ms_cluster_load(cx, name, &cluster), cx);
    ASSERT_INT(ms_cluster_for_job(cx, cluster, 512, ranks, &job), MS_EINPUT);
    assert_non_null(strstr(cx->first->message, message));
}

static void shares_that_no_domain_holds_are_refused(void **state)
{
    (void)state;
    expect_refused("gb200-nvl72", 76, "has 72 GPUs");
    expect_refused("gb200-nvl72", 30, "whole nodes of 4 GPUs");
    expect_refused("cpu", 8, "is one domain");
    ms_ctx *cx = test_cx();
    const ms_cluster *job = job_cluster_of(
        cx, &(job_cluster){"gb200-nvl72", .gpus = 1152, .ranks_per_domain = 64,
                           .rails = 4, .leaf_gpus = 576});
    ASSERT_INT(job->levels[0].gpus_per_domain, 64);
    ASSERT_INT(job->levels[1].gpus_per_domain, 512); /* eight racks a leaf, as before */
    ASSERT_INT(ms_level_gpus(&job->levels[0]), 72);
    ASSERT_TEXT(ms_allocation_text(cx->arena, job, 1152),
                "18 nvlink domains of 72 GPUs hold 64 ranks each (--ranks-per-domain)");
    ASSERT_TEXT(ms_allocation_text(cx->arena, job, 1160),
                "18 nvlink domains of 72 GPUs hold 64 ranks each, the last domain 8 "
                "(--ranks-per-domain)");
    assert_null(ms_allocation_text(cx->arena, job, 64));
}

/* Slots, rails and NICs follow from the place in a domain, whatever its size. */
static void rails_and_nics_start_anew_in_each_domain(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_cluster *job =
        job_cluster_of(cx, &(job_cluster){"hgx-h100", .gpus = 60, .ranks_per_domain = 6});
    ms_allocation p = ms_allocation_of(job, 60);
    for (long rank = 0; rank < 60; rank++) {
        ASSERT_INT(ms_domain_of(&p, 0, rank), rank / 6);
        ASSERT_INT(ms_rail_of(&p, 1, rank), rank % 6);
        ASSERT_INT(ms_nic_of(&p, rank), rank);
    }
    job = job_cluster_of(cx, &(job_cluster){"a100-efa", .gpus = 60,
                                            .ranks_per_domain = 5}); /* two GPUs a NIC */
    p = ms_allocation_of(job, 60);
    for (long rank = 0; rank < 60; rank++)
        ASSERT_INT(ms_nic_of(&p, rank), rank / 5 * 3 + rank % 5 / 2);
}

/* ---- ten plans ---- */

typedef struct place {
    long ranks_per_node;
    const char *tier;
} place;

typedef struct case_plan {
    job_cluster on;
    long size[MS_NUM_PLAN_AXES];
} case_plan;

static const case_plan cases[] = {
    {{"gb200-nvl72", .gpus = 64}, {1, 1, 8, 1, 8}},
    {{"gb200-nvl72", .gpus = 128}, {1, 1, 16, 1, 8}}, /* 64 of 72 */
    {{"gb200-nvl72", .gpus = 144}, {2, 1, 9, 1, 8}},  /* full racks */
    {{"gb200-nvl72", .gpus = 160, .ranks_per_domain = 72},
     {1, 2, 10, 1, 8}}, /* 72, 72 and 16 */
    {{"gb200-nvl72", .gpus = 144, .ranks_per_domain = 36},
     {1, 1, 9, 1, 16}}, /* tp over racks */
    {{"gb200-nvl72", .gpus = 1152, .rails = 4, .leaf_gpus = 576,
      .oversubscription = {1, 3}},
     {2, 1, 72, 1, 8}},
    {{"hgx-h100", .gpus = 512, .oversubscription = {1, 7}}, {2, 1, 32, 1, 8}},
    {{"hgx-h100", .gpus = 96, .rails = 4, .oversubscription = {2, 1}}, {1, 1, 8, 3, 4}},
    {{"tpu-v5e", .gpus = 64}, {1, 1, 16, 1, 4}},
    {{"tpu-v5e", .gpus = 384}, {1, 1, 48, 1, 8}}, /* two slices of 192 */
};

static ms_workload *open_workload(ms_ctx *cx, const case_plan *c, ms_plan *plan)
{
    ms_workload_inputs in = {0};
    ms_workload *workload;
    *plan = ms_plan_default(c->on.gpus);
    plan->model = "8b";
    plan->cluster = c->on.name;
    plan->sequence_length = 12288;
    plan->global_batch = 4 * c->on.gpus;
    memcpy(plan->size, c->size, sizeof plan->size);
    ms_plan_fill_defaults(plan);
    plan->sequence_parallel = true;
    plan->zero = 1;
    in.cluster = job_cluster_of(cx, &c->on);
    ASSERT_OK(ms_model_load(cx, plan->model, &in.model), cx);
    ASSERT_OK(ms_profile_load(cx, in.cluster->device.profile, &in.profile), cx);
    ASSERT_OK(ms_stack_load(cx, "megatron", &in.stack), cx);
    plan->cp_method = in.stack->cp_method;
    ASSERT_OK(ms_workload_make(cx, &in, plan, &workload), cx);
    ASSERT_OK(ms_plan_check(cx, plan, in.model, MS_NOWHERE), cx);
    return workload;
}

static place place_in_mesh(ms_ctx *cx, const ms_mesh *mesh, int axis,
                           const ms_cluster *cluster)
{
    ms_layout layout =
        ms_layout_make(MS_LEXICOGRAPHIC, mesh->axes[axis].size, mesh->axes[axis].stride);
    long *ranks;
    ASSERT_OK(ms_layout_groups(cx, layout, mesh->num_ranks, &ranks), cx);
    ms_axis_place at =
        ms_axis_place_of(cx->arena, layout, ranks, mesh->num_ranks, cluster);
    return (place){at.ranks_per_node, at.tier};
}

/* The highest level that a route passes. */
static int level_of_route(const ms_fabric *fabric, const int *route, int num)
{
    int level = 0;
    for (int i = 0; i < num; i++) {
        const ms_link *link = &fabric->links[route[i]];
        int reached = link->kind == MS_LINK_NIC      ? 1
                      : link->kind == MS_LINK_UPLINK ? link->level + 1
                                                     : 0;
        level = reached > level ? reached : level;
    }
    return level;
}

/* The place of an axis by the routes between its ranks alone: ranks are in one domain if
 * no NIC is between them. `ring_tier`: level at which rings meet over their own NICs. */
static place place_by_routes(const ms_fabric *fabric, const ms_mesh *mesh, int axis,
                             int *ring_tier)
{
    ms_group group = ms_mesh_group(mesh, &axis, 1);
    long ranks[1024], most = 1, size = group.size;
    int tier = 0, route[MS_MAX_ROUTE];
    *ring_tier = 0;
    for (long first = 0; first < mesh->num_ranks; first++) {
        ms_mesh_group_ranks(mesh, &group, first, ranks);
        long domains = 1;
        for (long i = 0; i < size; i++) {
            long next = ranks[(i + 1) % size];
            int level = level_of_route(fabric, route,
                                       ms_fabric_route(fabric, ranks[i], next, route));
            tier = level > tier ? level : tier;
            domains += i + 1 < size && level > 0;
            level = level_of_route(
                fabric, route, ms_fabric_route_own_nics(fabric, ranks[i], next, route));
            *ring_tier = level > *ring_tier ? level : *ring_tier;
        }
        most = domains > most ? domains : most;
    }
    return (place){(size + most - 1) / most, fabric->cluster->levels[tier].name};
}

static const ms_axis_prediction *find_axis(const ms_prediction *prediction,
                                           const char *name, long size)
{
    for (int i = 0; i < prediction->num_axes; i++)
        if (strcmp(prediction->axes[i].axis, name) == 0 &&
            prediction->axes[i].size == size)
            return &prediction->axes[i];
    return NULL;
}

/* Compares mesh, prediction and routes for each axis of a plan; returns how many axes the
 * prediction lists. */
static int compare_places(ms_ctx *cx, ms_workload *workload, const ms_plan *plan)
{
    const ms_cluster *cluster = workload->cluster;
    ms_mesh mesh = ms_plan_mesh(plan);
    ms_torus torus;
    bool is_torus = cluster->levels[0].topology == MS_TORUS;
    if (is_torus)
        torus = ms_plan_torus(plan, cluster);
    const ms_fabric *fabric =
        ms_fabric_make(cx->arena, cluster, plan->gpus, is_torus ? &torus : NULL);
    ms_prediction prediction;
    ASSERT_OK(ms_predict(cx, workload, plan, &prediction), cx);
    int num_listed = 0;
    for (int axis = 0; axis < mesh.num_axes; axis++) {
        if (mesh.axes[axis].size == 1)
            continue;
        int ring_tier;
        place drawn = place_in_mesh(cx, &mesh, axis, cluster);
        place routed = place_by_routes(fabric, &mesh, axis, &ring_tier);
        ASSERT_INT(drawn.ranks_per_node, routed.ranks_per_node);
        ASSERT_TEXT(drawn.tier, routed.tier);
        ms_group group = ms_mesh_group(&mesh, &axis, 1);
        ms_span span = ms_group_span(&group, mesh.num_ranks, cluster);
        ASSERT_INT(span.ring_tier > 0 ? span.ring_tier : span.tier, ring_tier);
        const ms_axis_prediction *priced =
            find_axis(&prediction, mesh.axes[axis].name, mesh.axes[axis].size);
        if (priced == NULL)
            continue;
        num_listed++;
        ASSERT_INT(priced->ranks_per_node, drawn.ranks_per_node);
        ASSERT_TEXT(priced->tier, drawn.tier);
    }
    return num_listed;
}

/* The best plan with the sizes of `plan` that a search finds, whatever its order. */
static ms_plan searched(ms_ctx *cx, ms_workload *workload, const ms_plan *plan)
{
    ms_space space = ms_space_all(plan, workload->stack);
    for (int axis = 0; axis < MS_NUM_PLAN_AXES; axis++)
        ASSERT_OK(
            ms_space_limit(cx, &space,
                           ms_arena_printf(cx->arena, "%s=%ld", ms_plan_axis_names[axis],
                                           plan->size[axis])),
            cx);
    ms_search_options options = {.num_best = 1, .num_threads = 1};
    ms_search_result result;
    ASSERT_OK(ms_search(cx, workload, &space, &options, &result), cx);
    ASSERT_INT(result.num_found, 1);
    ms_prediction prediction;
    ASSERT_OK(ms_predict(cx, workload, &result.found[0].plan, &prediction), cx);
    ASSERT_NEAR(result.found[0].step_s, prediction.replay_step_s, 1e-12);
    return result.found[0].plan;
}

/* A step simulated by nodes without sharing takes what the replay says, to 1 %. */
static void compare_steps(ms_ctx *cx, ms_workload *workload, const ms_plan *plan)
{
    ms_planned planned;
    ms_simulation sim;
    ms_planned_open(cx, workload, plan, &planned);
    ms_simulate_options options = {
        .engine = MS_ENGINE_EVENT, .detail = MS_DETAIL_NODE, .unshared = true};
    ASSERT_OK(ms_simulate(cx, &planned, &options, &sim), cx);
    ASSERT_NEAR(sim.step_s, sim.predicted_step_s, 0.01);
}

static void ten_plans_lie_where_all_commands_say(void **state)
{
    (void)state;
    int num_listed = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ms_ctx *cx = test_cx();
        ms_plan plan;
        ms_workload *workload = open_workload(cx, &cases[i], &plan);
        num_listed += compare_places(cx, workload, &plan);
        compare_steps(cx, workload, &plan);
        ms_plan found = searched(cx, workload, &plan);
        (void)compare_places(cx, workload, &found);
        ms_workload_close(workload);
    }
    assert_true(num_listed > 15);
}

/* ---- collectives alone ---- */

static const job_cluster fabrics[] = {
    {"gb200-nvl72", .gpus = 512},
    {"gb200-nvl72", .gpus = 512, .ranks_per_domain = 72}, /* the last rack has 8 ranks */
    {"gb200-nvl72", .gpus = 360, .oversubscription = {4}},
    {"gb200-nvl72", .gpus = 720, .rails = 4, .leaf_gpus = 144,
     .oversubscription = {1, 3}},
    {"gb200-nvl72", .gpus = 320, .ranks_per_domain = 40, .rails = 4, .leaf_gpus = 288,
     .oversubscription = {2, 2}},
    {"hgx-h100", .gpus = 512, .oversubscription = {1, 7}},
    {"hgx-h100", .gpus = 360, .rails = 8},
    {"hgx-h100", .gpus = 768, .rails = 4, .oversubscription = {2, 3}},
    {"hgx-h100", .gpus = 96, .ranks_per_domain = 6, .rails = 3,
     .oversubscription = {2, 2}},
    {"hgx-h100", .gpus = 100},
    {"a100-efa", .gpus = 480},
    {"mi300x", .gpus = 120},
    {"mi300x", .gpus = 96, .ranks_per_domain = 4, .oversubscription = {2}},
    {"tpu-v5e", .gpus = 256},
    {"tpu-v5e", .gpus = 384},
    {"tpu-v5p", .gpus = 1024},
};

#define NUM_MESHES TEST_CASES(40, 4)

static ms_mesh draw_mesh(ms_rng *rng, long gpus)
{
    long sizes[3], left = gpus;
    for (int i = 2; i > 0; i--) {
        sizes[i] = 1 + (long)ms_rng_below(rng, 64);
        while (left % sizes[i] != 0)
            sizes[i]--;
        left /= sizes[i];
    }
    sizes[0] = left;
    return ms_mesh_make((const char *const[]){"a", "b", "c"}, sizes, 3);
}

typedef struct subject {
    ms_ctx *cx;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_fabric *fabric;
    ms_mesh mesh;
    ms_group group;
    ms_span span;
} subject;

/* Seconds of a collective in all groups of the axis at once, with one task a group, when
 * nothing else uses the links; `wire_s`: duration of each task when links are idle. */
static double alone_s(const subject *s, ms_collective collective, ms_algorithm algorithm,
                      double wire_s)
{
    ms_arena *arena = s->cx->arena;
    double frac =
        ms_profile_network(s->profile, s->cluster->network)->bandwidth_frac.value;
    ms_graph_builder *b = ms_graph_open(arena);
    for (long i = 0; i < s->fabric->num_links; i++) {
        const ms_link *link = &s->fabric->links[i];
        ms_graph_link(b, "link", link->bytes_per_s * (link->level > 0 ? frac : 1.0));
    }
    ms_link_load load = ms_link_load_open(arena, s->fabric);
    ms_link_use *uses = MS_NEW_ARRAY(arena, s->fabric->num_links, ms_link_use);
    long *ranks = MS_NEW_ARRAY(arena, s->mesh.num_ranks, long);
    for (long first = 0; first < s->mesh.num_ranks; first++) {
        ms_mesh_group_ranks(&s->mesh, &s->group, first, ranks);
        if (ranks[0] != first)
            continue;
        ms_link_load_clear(&load);
        ms_flows_add(&load, algorithm, &(ms_flow){collective, ranks, s->group.size, 1e6});
        for (int i = 0; i < load.num_loaded; i++)
            uses[i] = (ms_link_use){load.loaded[i], load.bytes[load.loaded[i]] / wire_s};
        ms_task_cost cost = {
            .duration_s = wire_s, .num_uses = load.num_loaded, .pool = -1};
        ms_graph_add(b, -1, ms_graph_cost(b, &cost, uses), (ms_task_tag){0});
    }
    const ms_graph *graph = ms_graph_close(b);
    ms_event_result out = {.end_s = MS_NEW_ARRAY(arena, graph->num_tasks + 1, double)};
    ms_event_run(graph, &(ms_event_options){.share_links = true}, arena, &out);
    return out.makespan_s;
}

/* Whether the k-th ranks of a group in two of its domains are on different rails. */
static bool changes_rails(const subject *s)
{
    ms_allocation p = ms_allocation_of(s->cluster, s->mesh.num_ranks);
    long rails = 1, ranks[1024], others[1024];
    for (int i = 1; i < s->cluster->num_levels; i++)
        rails = p.rails[i] > rails ? p.rails[i] : rails;
    ms_mesh_group_ranks(&s->mesh, &s->group, 0, ranks);
    for (long first = 0; first < s->mesh.num_ranks; first++) {
        ms_mesh_group_ranks(&s->mesh, &s->group, first, others);
        for (long i = 0; i < s->group.size; i++)
            if (rails > 1 && ms_slot_of(&p, others[i]) - ms_slot_of(&p, others[0]) !=
                                 ms_slot_of(&p, ranks[i]) - ms_slot_of(&p, ranks[0]))
                return true;
    }
    return false;
}

static void check_collectives(const subject *s, int *num_checked)
{
    for (int kind = 0; kind < MS_NUM_COLLECTIVES; kind++) {
        bool is_pairs = kind == MS_ALL_TO_ALL;
        if (is_pairs && s->group.size > 64)
            continue;
        ms_collective_law law =
            ms_collective_law_make((ms_collective)kind, &s->span, s->cluster, s->profile);
        for (int a = 0; a < law.num_algorithms; a++) {
            ms_arena_mark mark = ms_arena_save(s->cx->arena);
            double wire_s = 1e6 * law.algorithm[a].beta_s_per_byte;
            double got_s = alone_s(s, (ms_collective)kind, law.algorithm[a].kind, wire_s);
            /* messages between rails leave over the NIC on the receiver's rail: where
             * groups lie unevenly, consecutive ranks of at most two positions in their
             * groups may choose the same one */
            double granted = is_pairs && changes_rails(s) ? 2.0 : 1.0;
            if (got_s > wire_s * granted * (1.0 + 1e-9))
                fail_msg("%s, %ld ranks, group of %ld by %ld: %s takes %g times its law",
                         s->cluster->name, s->mesh.num_ranks, s->group.size,
                         s->group.modes[0].stride, ms_collective_names[kind],
                         got_s / wire_s);
            *num_checked += granted == 1.0;
            ms_arena_rewind(s->cx->arena, mark);
        }
    }
}

/* All groups of an axis communicate at once, over rails, oversubscribed uplinks and
 * domains in any share: the event engine gives each the time of the closed form. */
static void collectives_alone_take_the_time_of_their_law(void **state)
{
    (void)state;
    int num_checked = 0;
    for (size_t i = 0; i < sizeof fabrics / sizeof *fabrics; i++) {
        ms_rng rng = ms_rng_seed(100 + i);
        subject s = {.cx = test_cx()};
        s.cluster = job_cluster_of(s.cx, &fabrics[i]);
        ASSERT_OK(ms_profile_load(s.cx, s.cluster->device.profile, &s.profile), s.cx);
        for (int trial = 0; trial < NUM_MESHES; trial++) {
            ms_arena_mark mark = ms_arena_save(s.cx->arena);
            s.mesh = draw_mesh(&rng, fabrics[i].gpus);
            bool is_torus = s.cluster->levels[0].topology == MS_TORUS;
            ms_torus torus;
            if (is_torus)
                torus = ms_torus_of_mesh(&s.cluster->levels[0], &s.mesh);
            s.fabric = ms_fabric_make(s.cx->arena, s.cluster, fabrics[i].gpus,
                                      is_torus ? &torus : NULL);
            int axis = (int)ms_rng_below(&rng, 3);
            s.group = ms_mesh_group(&s.mesh, &axis, 1);
            s.span = ms_group_span_on(&s.group, s.mesh.num_ranks, s.cluster,
                                      is_torus ? &torus : NULL);
            if (s.group.size > 1)
                check_collectives(&s, &num_checked);
            ms_arena_rewind(s.cx->arena, mark);
        }
    }
    assert_true(num_checked > 50 * NUM_MESHES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_the_largest_whole_nodes_that_divide),
        cmocka_unit_test(shares_that_no_domain_holds_are_refused),
        cmocka_unit_test(rails_and_nics_start_anew_in_each_domain),
        cmocka_unit_test(ten_plans_lie_where_all_commands_say),
        cmocka_unit_test(collectives_alone_take_the_time_of_their_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
