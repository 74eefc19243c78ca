/* Traces for other tools, of random plans: their kernels and bytes are those of the
 * simulation and of the plan's list of traffic, and running the traces of all ranks takes
 * as long as the simulated step. */
#include "sim/simulate/trace_chakra.h"
#include "sim/simulate/trace_kineto.h"

#include "tests/support/chakra_read.h"
#include "tests/support/kineto_check.h"
#include "tests/support/random_plans.h"
#include "tests/test.h"

#define NUM_PLANS TEST_CASES(3, 1)
#define MOST_GPUS 16

#define NEAR_US 0.01

typedef struct subject {
    ms_ctx *cx;
    const ms_simulation *simulation;
    const char *text; /* the plan, for messages */
    ms_rank_groups groups;
} subject;

/* ---- Kineto ---- */

static void sum_traffic(const subject *s, int pipeline_rank,
                        double bytes[MS_NUM_COLLECTIVES])
{
    ms_traffic traffic = ms_traffic_make(s->cx, s->simulation->planned, pipeline_rank);
    for (int i = 0; i < traffic.num_entries; i++)
        bytes[traffic.entries[i].collective] +=
            traffic.entries[i].count * traffic.entries[i].size_bytes;
}

static void check_kineto(const subject *s, int a)
{
    const ms_actor *actor = &s->simulation->actors[a];
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_kineto_write(file, s->cx->arena, s->simulation, &s->groups, a);
    ms_kineto_facts facts;
    const char *wrong =
        ms_kineto_check(s->cx, test_read_back(s->cx->arena, file), &facts);
    if (wrong != NULL)
        fail_msg("%s, rank %ld: %s", s->text, actor->rank, wrong);
    ASSERT_INT(facts.rank, actor->rank);
    ASSERT_INT(facts.world_size, s->simulation->fold.num_ranks);
    ASSERT_INT(facts.step_ns, llround(1e9 * s->simulation->last_end_s));
    /* a simulation counts sends that hold up the compute stream as compute */
    double compute_ns = 1e9 * actor->compute_s;
    double shown_ns = (double)(facts.compute_ns + facts.held_ns);
    if (fabs(shown_ns - compute_ns) > 1.0 * facts.num_kernels)
        fail_msg("%s, rank %ld: kernels take %.0f ns, %.0f ns", s->text, actor->rank,
                 shown_ns, compute_ns);
    double want[MS_NUM_COLLECTIVES] = {0};
    sum_traffic(s, actor->pipeline_rank, want);
    for (int c = 0; c < MS_NUM_COLLECTIVES; c++)
        if (fabs(facts.bytes[c] - want[c]) > facts.slack_bytes[c] + 1e-8 * want[c])
            fail_msg("%s, rank %ld: %s of %.17g bytes, %.17g", s->text, actor->rank,
                     ms_collective_names[c], facts.bytes[c], want[c]);
}

/* ---- Chakra ---- */

static ms_chakra_trace read_chakra(const subject *s, const ms_chakra *chakra, long rank)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_chakra_write(file, chakra, rank);
    size_t num = (size_t)ftell(file);
    const char *bytes = test_read_back(s->cx->arena, file);
    ms_chakra_trace trace;
    const char *wrong =
        ms_chakra_read(s->cx->arena, (const unsigned char *)bytes, num, &trace);
    if (wrong != NULL)
        fail_msg("%s, rank %ld: %s", s->text, rank, wrong);
    return trace;
}

/* Nodes take whole microseconds in files; a run with their unrounded times sums no errors. */
static void unround(const subject *s, ms_chakra_trace *trace)
{
    const ms_simulation *sim = s->simulation;
    for (int i = 0; i < trace->num_nodes; i++) {
        ms_chakra_node *node = &trace->nodes[i];
        if (node->type == CHAKRA_RECV)
            continue;
        node->taken_us = 1e6 * (sim->end_s[node->id] - sim->start_s[node->id]);
        if (fabs(node->taken_us - (double)node->duration_us) > 1.0)
            fail_msg("%s: node %llu takes %llu us, %.3f us", s->text,
                     (unsigned long long)node->id, (unsigned long long)node->duration_us,
                     node->taken_us);
    }
}

/* A run takes as long as the step where the ranks of a collective take equally long. Where
 * they do not, ranks that the simulation lets go on wait in a run for the last one. By
 * replay a run may take less, as files do not tell by how much gathers are slowed by other
 * transfers. */
static void check_time(const subject *s, ms_chakra_times times)
{
    double end_us = times.end_us;
    const ms_simulate_options *options = &s->simulation->options;
    double late_us = end_us - 1e6 * s->simulation->last_end_s;
    bool is_early = late_us < -NEAR_US && options->engine == MS_ENGINE_EVENT;
    if (options->jitter_frac == 0.0 && (late_us > NEAR_US + times.unequal_us || is_early))
        fail_msg("%s: a run takes %.3f us, %.3f us more than the step", s->text, end_us,
                 late_us);
}

static void check_chakra(const subject *s)
{
    const ms_simulation *sim = s->simulation;
    long num_ranks = sim->fold.num_ranks;
    ms_chakra_trace *traces = MS_NEW_ARRAY(s->cx->arena, num_ranks, ms_chakra_trace);
    bool *is_written = MS_NEW_ARRAY(s->cx->arena, num_ranks, bool);
    const ms_chakra **chakra =
        MS_NEW_ARRAY(s->cx->arena, sim->num_actors, const ms_chakra *);
    for (int a = 0; a < sim->num_actors; a++)
        chakra[a] = ms_chakra_open(s->cx->arena, sim, &s->groups, a);
    for (long rank = 0; rank < num_ranks; rank++) {
        traces[rank] = read_chakra(s, chakra[sim->fold.class_of[rank]], rank);
        unround(s, &traces[rank]);
        is_written[rank] = true;
    }
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_chakra_write_groups(file, &s->groups, is_written);
    ms_chakra_times times;
    const char *wrong = ms_chakra_run(s->cx, traces, num_ranks,
                                      test_read_back(s->cx->arena, file), &times);
    if (wrong != NULL)
        fail_msg("%s: %s", s->text, wrong);
    check_time(s, times);
}

/* ---- plans ---- */

static void check_plan(ms_ctx *cx, const ms_planned *planned, ms_simulate_options options)
{
    ms_simulation sim;
    options.detail = MS_DETAIL_NODE;
    ASSERT_OK(ms_simulate(cx, planned, &options, &sim), cx);
    subject s = {cx, &sim, ms_plan_text(cx->arena, planned->plan),
                 ms_rank_groups_make(cx->arena, &sim)};
    for (int a = 0; a < sim.num_actors; a++)
        check_kineto(&s, a);
    check_chakra(&s);
}

static void check_plans_of(const ms_plan_subject *of, uint64_t seed)
{
    ms_ctx *cx = test_cx();
    ms_plan base;
    ms_workload *workload;
    ASSERT_OK(ms_plan_subject_open(cx, of, &base, &workload), cx);
    ms_rng rng = ms_rng_seed(seed);
    for (int trial = 0; trial < NUM_PLANS; trial++) {
        ms_arena_mark mark = ms_arena_save(cx->arena);
        ms_plan plan = ms_random_plan(&rng, workload, &base, MOST_GPUS);
        ms_planned planned;
        ms_planned_open(cx, workload, &plan, &planned);
        check_plan(cx, &planned,
                   (ms_simulate_options){.engine = trial % 3 == 1 ? MS_ENGINE_REPLAY
                                                                  : MS_ENGINE_EVENT,
                                         .jitter_frac = trial % 3 == 2 ? 0.05 : 0.0});
        ms_arena_rewind(cx->arena, mark);
    }
    ms_workload_close(workload);
}

static void files_agree_with_the_simulation(void **state)
{
    (void)state;
    for (int i = 0; i < MS_NUM_PLAN_SUBJECTS; i++)
        check_plans_of(&ms_plan_subjects[i], 310 + (uint64_t)i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_agree_with_the_simulation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
