/* The interleaved schedule for all small shapes: a shape is refused exactly where
 * executing its order, rank by rank, would wait forever. */
#include "costmodel/schedule/schedule.h"

#include "tests/test.h"

#define MAX_STAGES 64

/* Whether every rank comes to the end of its list of actions. */
static bool order_runs(const ms_schedule_shape *shape)
{
    int p = shape->num_ranks, v = shape->virtual_stages, m = shape->num_microbatches;
    int total = m * v, group = ms_schedule_group(shape), stages = p * v;
    int done[2][MAX_STAGES] = {
        /* number of micro-batches done, by pass (0 forward, 1 backward) and stage, which
         * runs them in ascending order */
        {0}};
    int next[16] = {0};
    for (bool moved = true; moved;) {
        moved = false;
        for (int r = 0; r < p; r++) {
            while (next[r] < 2 * total) {
                int w = 2 * (p - 1 - r) + (v - 1) * group;
                w = w < total ? w : total;
                int i = next[r] - w, pairs = total - w;
                bool forward = i < 0 || (i < 2 * pairs && i % 2 == 0);
                int k = i < 0           ? next[r]
                        : i < 2 * pairs ? (forward ? w : 0) + i / 2
                                        : i - pairs;
                int first = k / (group * v) * group;
                int size = m - first < group ? m - first : group;
                int chunk = (k - first * v) / size, mb = first + (k - first * v) % size;
                int stage = (forward ? chunk : v - 1 - chunk) * p + r;
                bool ready = forward ? stage == 0 || done[0][stage - 1] > mb
                                     : done[0][stage] > mb && (stage == stages - 1 ||
                                                               done[1][stage + 1] > mb);
                if (!ready)
                    break;
                done[forward ? 0 : 1][stage]++;
                next[r]++;
                moved = true;
            }
        }
    }
    for (int r = 0; r < p; r++)
        if (next[r] < 2 * total)
            return false;
    return true;
}

static void interleaved_groups_are_refused_exactly_when_they_deadlock(void **state)
{
    (void)state;
    int num_refused = 0;
    for (int p = 2; p <= 8; p++) {
        for (int v = 2; v <= 4; v++) {
            for (int m = 1; m <= 22; m++) {
                for (int group = 0; group <= m; group++) {
                    ms_schedule_shape shape = {.kind = MS_INTERLEAVED,
                                               .num_ranks = p,
                                               .num_microbatches = m,
                                               .virtual_stages = v,
                                               .group = group};
                    bool allowed = ms_schedule_allows(&shape, NULL);
                    if (allowed != order_runs(&shape))
                        fail_msg("p %d m %d v %d g %d: allowed is %d", p, m, v, group,
                                 allowed);
                    num_refused += !allowed;
                }
            }
        }
    }
    assert_true(num_refused > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interleaved_groups_are_refused_exactly_when_they_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
