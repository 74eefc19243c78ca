/* Folding of ranks that behave alike into classes: a uniform mesh folds to its
 * pipeline stages, one slow rank splits off the ranks that wait for it. */
#include "sim/simulate/fold.h"
#include "tests/test.h"

/* A mesh of pp x dp x tp ranks, tp innermost. */
typedef struct grid {
    long pp, dp, tp;
    ms_fold_axis axes[3];
    int *colour; /* initial class of each rank: its pipeline stage */
} grid;

static ms_fold_axis axis_of(ms_arena *arena, long num_ranks, long size, long stride,
                            bool ordered)
{
    long *ranks = MS_NEW_ARRAY(arena, num_ranks, long), at = 0;
    for (long first = 0; first < num_ranks; first++)
        for (long i = 0; i < size && first / stride % size == 0; i++)
            ranks[at++] = first + i * stride;
    return (ms_fold_axis){num_ranks / size, size, ranks, ordered};
}

static grid make_grid(ms_arena *arena, long pp, long dp, long tp)
{
    long num_ranks = pp * dp * tp;
    grid g = {.pp = pp, .dp = dp, .tp = tp};
    g.axes[0] = axis_of(arena, num_ranks, pp, dp * tp, true);
    g.axes[1] = axis_of(arena, num_ranks, dp, tp, false);
    g.axes[2] = axis_of(arena, num_ranks, tp, 1, false);
    g.colour = MS_NEW_ARRAY(arena, num_ranks, int);
    for (long r = 0; r < num_ranks; r++)
        g.colour[r] = (int)(r / (dp * tp));
    return g;
}

static ms_fold fold_of(ms_arena *arena, const grid *g)
{
    return ms_fold_make(arena, g->pp * g->dp * g->tp, g->colour, g->axes, 3);
}

static void uniform_meshes_fold_to_stages(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    static const long sizes[][3] = {
        {1, 1, 1}, {4, 1, 1}, {1, 8, 2}, {4, 3, 2}, {16, 128, 8}};
    for (int i = 0; i < 5; i++) {
        grid g = make_grid(cx->arena, sizes[i][0], sizes[i][1], sizes[i][2]);
        ms_fold fold = fold_of(cx->arena, &g);
        ASSERT_INT(fold.num_classes, g.pp);
        for (int c = 0; c < fold.num_classes; c++)
            ASSERT_INT(fold.multiplicity[c], g.dp * g.tp);
    }
}

/* Stages are told apart even if all ranks start in one class, since positions on an
 * ordered axis differ. */
static void an_order_tells_stages_apart(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    grid g = make_grid(cx->arena, 4, 3, 2);
    memset(g.colour, 0, 24 * sizeof *g.colour);
    ASSERT_INT(fold_of(cx->arena, &g).num_classes, 4);
    g.axes[0].ordered = false;
    ASSERT_INT(fold_of(cx->arena, &g).num_classes, 1);
}

/* In a mesh of 4 x 3 x 2, one slow rank splits every stage into four classes: the slow
 * rank's own column (1 rank), its tp peer (1), its dp group (2), and all others (2). */
static void a_slow_rank_splits_by_how_near_it_is(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    grid g = make_grid(cx->arena, 4, 3, 2);
    g.colour[7] = 100; /* the slow rank: stage 1, dp 0, tp 1 */
    ms_fold fold = fold_of(cx->arena, &g);
    ASSERT_INT(fold.num_classes, 4 * 4);
    for (long stage = 0; stage < 4; stage++) {
        const int *at = fold.class_of + stage * 6;
        ASSERT_INT(fold.multiplicity[at[0]], 1);
        ASSERT_INT(fold.multiplicity[at[1]], 1);
        ASSERT_INT(fold.multiplicity[at[2]], 2);
        ASSERT_INT(fold.multiplicity[at[3]], 2);
        ASSERT_INT(at[2], at[4]);
        ASSERT_INT(at[3], at[5]);
    }
}

static void classes_are_numbered_by_their_smallest_rank(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const int colour[] = {9, -4, 9, 2, -4};
    ms_fold fold = ms_fold_make(cx->arena, 5, colour, NULL, 0);
    static const int want[] = {0, 1, 0, 2, 1};
    ASSERT_INT(fold.num_classes, 3);
    for (int r = 0; r < 5; r++)
        ASSERT_INT(fold.class_of[r], want[r]);
    ASSERT_INT(fold.member[2], 3);
    ASSERT_INT(fold.multiplicity[1], 2);
}

static void without_folding_every_rank_is_a_class(void **state)
{
    (void)state;
    ms_fold fold = ms_fold_none(test_cx()->arena, 7);
    ASSERT_INT(fold.num_classes, 7);
    ASSERT_INT(fold.class_of[6], 6);
    ASSERT_INT(fold.member[6], 6);
    ASSERT_INT(fold.multiplicity[6], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_meshes_fold_to_stages),
        cmocka_unit_test(an_order_tells_stages_apart),
        cmocka_unit_test(a_slow_rank_splits_by_how_near_it_is),
        cmocka_unit_test(classes_are_numbered_by_their_smallest_rank),
        cmocka_unit_test(without_folding_every_rank_is_a_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
