/* Overlap of compute with transfers, block by block: periods that are added at once take as
 * long as when they are added one by one. */
#include "sim/step/unit_overlap.h"

#include "base/rng.h"
#include "tests/test.h"

#define MOST_GROUPS 5
#define NUM_CASES   2000

typedef struct pattern {
    ms_block_cost blocks[MOST_GROUPS];
    ms_block_group groups[MOST_GROUPS];
    int num;
    long times;
} pattern;

/* Transfers of about as long as the compute, or with `share` 0 none. */
static double transfer_s(ms_rng *rng, double share)
{
    return share * ms_rng_uniform(rng);
}

/* Fills a pattern, whose groups point into it. */
static void draw_pattern(ms_rng *rng, pattern *p)
{
    *p = (pattern){.num = 1 + (int)ms_rng_below(rng, MOST_GROUPS),
                   .times = 1 + (long)ms_rng_below(rng, 40)};
    double gathers = (double)ms_rng_below(rng, 3);
    for (int i = 0; i < p->num; i++) {
        ms_block_cost *b = &p->blocks[i];
        b->forward_s = ms_rng_uniform(rng);
        b->weight_s = ms_rng_uniform(rng);
        b->backward_s = b->weight_s + ms_rng_uniform(rng);
        b->contended_forward_s = 0.1 * b->forward_s;
        b->contended_backward_s = 0.2 * b->backward_s;
        b->contended_weight_s = 0.1 * b->weight_s;
        b->gather_s = ms_rng_below(rng, 3) == 0 ? 0.0 : transfer_s(rng, gathers);
        b->reduce_s = transfer_s(rng, (double)ms_rng_below(rng, 5));
        b->replicate_s = transfer_s(rng, (double)ms_rng_below(rng, 2));
        b->all_reduce_s = transfer_s(rng, 3.0);
        p->groups[i] = (ms_block_group){b, 1.0 + (double)ms_rng_below(rng, 4)};
    }
}

static void pass(ms_unit_overlap *walk, const pattern *p)
{
    for (int i = 0; i < p->num; i++)
        ms_unit_overlap_pass(walk, p->groups[i].block, p->groups[i].block,
                             p->groups[i].count);
}

/* Two periods, `p->times` more, and one again. */
static ms_unit_times times_of(const pattern *p, bool at_once)
{
    ms_unit_times times = {0};
    ms_unit_overlap walk = {.interference_frac = 0.3,
                            .slow_forward_frac = 0.1,
                            .slow_backward_frac = {0.1, 0.2},
                            .slow_weight_frac = {0.05, 0.1},
                            .out = &times};
    pass(&walk, p);
    pass(&walk, p);
    if (at_once)
        ms_unit_overlap_repeat(&walk, p->groups, p->num, (double)p->times);
    for (long i = 0; i < p->times && !at_once; i++)
        pass(&walk, p);
    pass(&walk, p);
    ms_unit_overlap_end(&walk);
    return times;
}

static void periods_at_once_are_periods_one_by_one(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(29);
    int num_pending = 0;
    for (int c = 0; c < NUM_CASES; c++) {
        pattern p;
        draw_pattern(&rng, &p);
        ms_unit_times want = times_of(&p, false), got = times_of(&p, true);
        const double *a = (const double *)&got, *b = (const double *)&want;
        for (size_t i = 0; i < sizeof got / sizeof *a; i++)
            if (!(fabs(a[i] - b[i]) <= 1e-12 * want.last_backward_s))
                fail_msg("case %d, number %zu: %.17g at once, %.17g one by one", c, i,
                         a[i], b[i]);
        num_pending += want.tail_s > 10.0;
    }
    assert_true(num_pending > NUM_CASES / 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(periods_at_once_are_periods_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
