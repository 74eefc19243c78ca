/* Max-min fair rates of flows on shared links, for random problems, against the
 * simplest algorithm and against the definition. */
#include "base/rng.h"
#include "sim/engine/maxmin.h"

#include "tests/support/naive_engine.h"
#include "tests/test.h"

#define MAX_LINKS 10
#define MAX_FLOWS 30

static int between(ms_rng *rng, int low, int high)
{
    return low + (int)ms_rng_below(rng, (uint64_t)(high - low + 1));
}

/* A random rate, often a whole number, so that several links fill up together. */
static double random_size(ms_rng *rng)
{
    return between(rng, 0, 1) ? between(rng, 1, 4) : 0.1 + 4.0 * ms_rng_uniform(rng);
}

static ms_maxmin_problem make_problem(ms_rng *rng, ms_arena *arena)
{
    int num_links = between(rng, 1, MAX_LINKS), num_flows = between(rng, 0, MAX_FLOWS);
    double *capacity = MS_NEW_ARRAY(arena, num_links, double);
    double *most = MS_NEW_ARRAY(arena, num_flows, double);
    int *first_use = MS_NEW_ARRAY(arena, num_flows + 1, int);
    ms_flow_use *uses = MS_NEW_ARRAY(arena, num_flows * 4, ms_flow_use);
    double scale = between(rng, 0, 1) ? 1.0 : 1e11;
    for (int i = 0; i < num_links; i++)
        capacity[i] = 3.0 * scale * random_size(rng);
    bool weighted = between(rng, 0, 1);
    for (int v = 0; v < num_flows; v++) {
        most[v] = scale * random_size(rng) * (between(rng, 0, 2) ? 1.0 : 100.0);
        int num_uses = between(rng, 0, 4);
        for (int i = 0; i < num_uses; i++)
            uses[first_use[v] + i] = (ms_flow_use){between(rng, 0, num_links - 1),
                                                   weighted ? random_size(rng) : 1.0};
        first_use[v + 1] = first_use[v] + num_uses;
    }
    return (ms_maxmin_problem){num_links, capacity, num_flows, first_use, uses, most};
}

static void rates_are_those_of_the_simplest_algorithm(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        ms_rng rng = ms_rng_seed(seed);
        ms_arena *arena = ms_arena_open();
        ms_maxmin_problem p = make_problem(&rng, arena);
        double got[MAX_FLOWS], want[MAX_FLOWS];
        ms_maxmin_solve(&p, arena, got);
        ms_naive_maxmin(&p, want);
        for (int v = 0; v < p.num_flows; v++)
            if (!(fabs(got[v] - want[v]) <= 1e-9 * want[v]))
                fail_msg("seed %llu: flow %d: got %.17g, want %.17g",
                         (unsigned long long)seed, v, got[v], want[v]);
        ms_arena_close(arena);
    }
}

/* Whether the flow's rate is exactly its own bound, or the flow uses a full link on
 * which no other flow is faster. */
static bool is_fair(const ms_maxmin_problem *p, const double *rate, const double *taken,
                    const double *fastest, int flow)
{
    if (rate[flow] <= p->most[flow] && rate[flow] >= p->most[flow])
        return true;
    for (int i = p->first_use[flow]; i < p->first_use[flow + 1]; i++) {
        int link = p->uses[i].link;
        if (taken[link] >= p->capacity[link] * (1.0 - 1e-9) &&
            rate[flow] >= fastest[link] * (1.0 - 1e-9))
            return true;
    }
    return false;
}

static void rates_are_fair_by_definition(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        ms_rng rng = ms_rng_seed(seed);
        ms_arena *arena = ms_arena_open();
        ms_maxmin_problem p = make_problem(&rng, arena);
        double rate[MAX_FLOWS], taken[MAX_LINKS] = {0}, fastest[MAX_LINKS] = {0};
        ms_maxmin_solve(&p, arena, rate);
        for (int v = 0; v < p.num_flows; v++)
            for (int i = p.first_use[v]; i < p.first_use[v + 1]; i++) {
                int link = p.uses[i].link;
                taken[link] += p.uses[i].weight * rate[v];
                fastest[link] = fmax(fastest[link], rate[v]);
            }
        for (int i = 0; i < p.num_links; i++)
            if (taken[i] > p.capacity[i] * (1.0 + 1e-9))
                fail_msg("seed %llu: link %d", (unsigned long long)seed, i);
        for (int v = 0; v < p.num_flows; v++)
            if (!is_fair(&p, rate, taken, fastest, v))
                fail_msg("seed %llu: flow %d", (unsigned long long)seed, v);
        ms_arena_close(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_those_of_the_simplest_algorithm),
        cmocka_unit_test(rates_are_fair_by_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
