/* Folding of ranks into classes, against its definition: ranks of one class see equal
 * classes in each group (an equitable partition), and no coarser partition of that
 * kind exists (a naive refinement, which compares sorted groups, finds the same one). */
#include "base/rng.h"
#include "sim/simulate/fold.h"
#include "tests/test.h"

#define MAX_RANKS 48
#define MAX_AXES  4

typedef struct instance {
    long num_ranks;
    int colour[MAX_RANKS];
    int num_axes;
    ms_fold_axis axes[MAX_AXES];
    long ranks[MAX_AXES][MAX_RANKS];
} instance;

static void shuffle(ms_rng *rng, long *items, long num)
{
    for (long i = num - 1; i > 0; i--) {
        long j = (long)ms_rng_below(rng, (uint64_t)i + 1), kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
}

/* Groups along an axis of a mesh: ranks `stride` apart. */
static void fill_regular(long *ranks, long num_ranks, long size, long stride)
{
    long at = 0;
    for (long first = 0; first < num_ranks; first++)
        if (first / stride % size == 0)
            for (long i = 0; i < size; i++)
                ranks[at++] = first + i * stride;
}

static void make_instance(ms_rng *rng, instance *it)
{
    static const long sizes[] = {1, 2, 4, 6, 12, 24, 36, 48};
    it->num_ranks = sizes[ms_rng_below(rng, 8)];
    uint64_t colours = 1 + ms_rng_below(rng, 3);
    for (long r = 0; r < it->num_ranks; r++)
        it->colour[r] =
            ms_rng_below(rng, 4) == 0 ? -(int)ms_rng_below(rng, colours) : 1000;
    it->num_axes = (int)ms_rng_below(rng, MAX_AXES + 1);
    for (int a = 0; a < it->num_axes; a++) {
        long size = 1 + (long)ms_rng_below(rng, (uint64_t)it->num_ranks);
        while (it->num_ranks % size != 0)
            size--;
        long outer = it->num_ranks / size, stride = ms_rng_below(rng, 2) ? 1 : outer;
        fill_regular(it->ranks[a], it->num_ranks, size, stride);
        if (ms_rng_below(rng, 3) == 0)
            shuffle(rng, it->ranks[a], it->num_ranks);
        it->axes[a] =
            (ms_fold_axis){outer, size, it->ranks[a], ms_rng_below(rng, 2) == 0};
    }
}

/* ---- classes by definition ---- */

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/* Writes to `seen` what `rank` sees along an axis. On an ordered axis: its position in
 * its group, then the classes of the group's ranks in their order. Otherwise: 0, then
 * these classes sorted. */
static void see(const ms_fold_axis *axis, const int *classes, long rank,
                int seen[MAX_RANKS + 1])
{
    long at = 0;
    while (axis->ranks[at] != rank)
        at++;
    const long *group = axis->ranks + at / axis->size * axis->size;
    seen[0] = axis->ordered ? (int)(at % axis->size) : 0;
    for (long i = 0; i < axis->size; i++)
        seen[1 + i] = classes[group[i]];
    if (!axis->ordered)
        qsort(seen + 1, (size_t)axis->size, sizeof *seen, compare);
}

static bool see_alike(const instance *it, const int *classes, long a, long b)
{
    for (int i = 0; i < it->num_axes; i++) {
        int of_a[MAX_RANKS + 1], of_b[MAX_RANKS + 1];
        see(&it->axes[i], classes, a, of_a);
        see(&it->axes[i], classes, b, of_b);
        if (memcmp(of_a, of_b, (size_t)(it->axes[i].size + 1) * sizeof *of_a) != 0)
            return false;
    }
    return true;
}

/* One round of refinement: splits classes whose ranks see different classes. Classes
 * are numbered by their smallest rank. Returns the number of classes. */
static int refine_once(const instance *it, const int *classes, int *finer)
{
    int num = 0;
    for (long r = 0; r < it->num_ranks; r++) {
        finer[r] = -1;
        for (long s = 0; s < r && finer[r] < 0; s++)
            if (classes[r] == classes[s] && see_alike(it, classes, r, s))
                finer[r] = finer[s];
        if (finer[r] < 0)
            finer[r] = num++;
    }
    return num;
}

static int refine_naively(const instance *it, int *classes)
{
    int finer[MAX_RANKS], num = 0, before = -1;
    memcpy(classes, it->colour, (size_t)it->num_ranks * sizeof *classes);
    while (num != before) {
        before = num;
        num = refine_once(it, classes, finer);
        memcpy(classes, finer, (size_t)it->num_ranks * sizeof *classes);
    }
    return num;
}

/* ---- properties ---- */

static void the_fold_is_the_coarsest_equitable_partition(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rng rng = ms_rng_seed(11);
    for (int trial = 0; trial < 1500; trial++) {
        ms_arena_mark mark = ms_arena_save(cx->arena);
        instance it;
        int classes[MAX_RANKS];
        make_instance(&rng, &it);
        ms_fold fold =
            ms_fold_make(cx->arena, it.num_ranks, it.colour, it.axes, it.num_axes);
        ASSERT_INT(fold.num_classes, refine_naively(&it, classes));
        for (long r = 0; r < it.num_ranks; r++)
            ASSERT_INT(fold.class_of[r], classes[r]);
        ms_arena_rewind(cx->arena, mark);
    }
}

static void members_and_multiplicities_fit_the_classes(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_rng rng = ms_rng_seed(12);
    for (int trial = 0; trial < 300; trial++) {
        instance it;
        make_instance(&rng, &it);
        ms_fold fold = trial % 10 == 0 ? ms_fold_none(cx->arena, it.num_ranks)
                                       : ms_fold_make(cx->arena, it.num_ranks, it.colour,
                                                      it.axes, it.num_axes);
        long counted[MAX_RANKS] = {0};
        for (long r = it.num_ranks - 1; r >= 0; r--)
            counted[fold.class_of[r]]++;
        for (int c = 0; c < fold.num_classes; c++) {
            ASSERT_INT(fold.multiplicity[c], counted[c]);
            ASSERT_INT(fold.class_of[fold.member[c]], c);
            assert_true(c == 0 || fold.member[c] > fold.member[c - 1]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fold_is_the_coarsest_equitable_partition),
        cmocka_unit_test(members_and_multiplicities_fit_the_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
