/* Random einsums on random small meshes, with random placements of their inputs:
 * executed rank by rank, forward and backward, they give exactly what the unsharded
 * einsum and its gradients give. All values are small whole numbers, so that sums are
 * exact in any order. */
#include "base/rng.h"
#include "costmodel/reshard/einsum_strategy.h"
#include "tests/support/dense_einsum.h"
#include "tests/support/run_redistribution.h"
#include "tests/test.h"

#define NUM_CASES TEST_CASES(10000, 2000)
/* Cases per case whose sharding ms_einsum_choose chooses, which is slow: it tries many. */
#define CHOSEN_EVERY 40
#define MAX_RANKS    12
#define MAX_SIZE     6
#define POOL         "abcdef"

typedef struct world {
    ms_ctx *cx;
    const ms_cluster *cluster;
    const ms_profile *profile;
    ms_pricer pricer;
} world;

typedef struct test_case {
    ms_ctx *cx;
    ms_rng rng;
    ms_mesh mesh;
    long size['z' + 1];
    ms_einsum_problem problem;
    ms_spec wanted;
    const double *whole[MS_EINSUM_MAX_INPUTS]; /* the unsharded inputs */
    /* inputs redistributed as the product needs them */
    ms_sharded_tensor inputs[MS_EINSUM_MAX_INPUTS];
    uint64_t number;
} test_case;

static long below(test_case *t, long bound)
{
    return (long)ms_rng_below(&t->rng, (uint64_t)bound);
}

/* ---- random cases ---- */

static void random_mesh(test_case *t)
{
    static const char *const names[] = {"dp", "cp", "tp"};
    long sizes[3];
    /* only 1 in 6 meshes has three axes, since planning on these takes longest */
    long draw = below(t, 6);
    int num_axes = draw < 2 ? 1 : draw < 5 ? 2 : 3;
    for (long product = MAX_RANKS + 1; product > MAX_RANKS;) {
        product = 1;
        for (int i = 0; i < num_axes; i++)
            product *= sizes[i] = 1 + below(t, 4);
    }
    t->mesh = ms_mesh_make(names, sizes, num_axes);
}

static void random_letters(test_case *t, const char *from, int least, char *out)
{
    char pool[sizeof POOL] = {0};
    strcpy(pool, from);
    int left = (int)strlen(pool);
    int num = least + (int)below(t, (left < 4 ? left : 4) - least + 1);
    for (int i = 0; i < num; i++) {
        int at = (int)below(t, left);
        out[i] = pool[at];
        pool[at] = pool[--left];
    }
    out[num] = '\0';
}

static void random_einsum(test_case *t)
{
    char text[64] = "", letters[8], all[sizeof POOL] = "";
    int num_inputs = 1 + (int)below(t, 3), num_letters = 0;
    for (int i = 0; i < num_inputs; i++) {
        random_letters(t, POOL, 1, letters);
        for (const char *c = letters; *c != '\0'; c++)
            if (strchr(all, *c) == NULL)
                all[num_letters++] = *c;
        strcat(strcat(text, i > 0 ? "," : ""), letters);
    }
    random_letters(t, all, 0, letters);
    strcat(strcat(text, "->"), letters);
    ASSERT_OK(ms_einsum_parse(t->cx, text, &t->problem.einsum), t->cx);
    for (const char *c = POOL; *c != '\0'; c++)
        t->size[(unsigned char)*c] = 1 + below(t, MAX_SIZE);
    ms_einsum_set_tensors(t->cx->arena, &t->problem, t->size, 2.0);
}

static ms_placement random_placement(test_case *t, const ms_global_tensor *tensor,
                                     bool may_be_partial)
{
    long draw = below(t, may_be_partial ? 8 : 6);
    if (draw == 6)
        return (ms_placement){.kind = MS_PARTIAL_SUM};
    if (draw == 7)
        return (ms_placement){.kind = MS_PARTIAL_MAX};
    if (draw < 2 || tensor->num_dims == 0)
        return ms_replicate;
    ms_placement shard = ms_shard(tensor->dims[below(t, tensor->num_dims)]);
    if (draw == 5)
        shard.split_factor = 2 + (int)below(t, 3);
    return shard;
}

static ms_spec random_spec(test_case *t, const ms_global_tensor *tensor,
                           bool may_be_partial)
{
    const char *why;
    ms_spec spec;
    do {
        spec = (ms_spec){0};
        for (int axis = 0; axis < t->mesh.num_axes; axis++)
            spec.at[axis] = random_placement(t, tensor, may_be_partial);
    } while (!ms_spec_check(t->cx->arena, &t->mesh, tensor, &spec, &why));
    return spec;
}

static const double *random_values(test_case *t, const ms_global_tensor *tensor)
{
    long num = ms_global_tensor_elements(tensor);
    double *values = MS_NEW_ARRAY(t->cx->arena, num, double);
    for (long i = 0; i < num; i++)
        values[i] = (double)(below(t, 9) - 4);
    return values;
}

/* ---- execution ---- */

static void check_equal(const test_case *t, const char *what, const double *got,
                        const double *want, long num)
{
    for (long i = 0; i < num; i++)
        if (got[i] != want[i])
            fail_msg("case %d, %s, %s: element %ld is %g, want %g", (int)t->number,
                     ms_einsum_text(t->cx->arena, &t->problem.einsum), what, i, got[i],
                     want[i]);
}

static ms_sharded_tensor moved(test_case *t, const ms_sharded_tensor *from,
                               const ms_einsum_move *move)
{
    assert_true(ms_spec_equal(&t->mesh, &from->spec, &move->from));
    ms_sharded_tensor to = ms_run_redistribution(t->cx->arena, *from, &move->plan);
    /* set here, since the plan has no step that changes an axis of size one */
    to.spec = move->to;
    return to;
}

/* Enters the local size of each letter (dimension) of one operand on the rank. */
static void note_sizes(const ms_sharded_tensor *operand, long rank, long *size)
{
    for (int d = 0; d < operand->tensor->num_dims; d++)
        size[(unsigned char)operand->tensor->dims[d]] = operand->parts[rank].size[d];
}

/* The einsum executed by every rank on its local parts; the result is placed as `spec`
 * says. */
static ms_sharded_tensor executed(test_case *t, const ms_einsum *einsum,
                                  const ms_sharded_tensor *const *operands,
                                  const ms_global_tensor *result, const ms_spec *spec)
{
    ms_sharded_tensor out = ms_sharded_tensor_make(t->cx->arena, &t->mesh, result, spec);
    for (long rank = 0; rank < t->mesh.num_ranks; rank++) {
        long size['z' + 1] = {0};
        const double *data[MS_EINSUM_MAX_INPUTS];
        note_sizes(&out, rank, size);
        for (int i = 0; i < einsum->num_inputs; i++) {
            note_sizes(operands[i], rank, size);
            data[i] = operands[i]->parts[rank].data;
        }
        if (out.parts[rank].num_elements > 0)
            ms_dense_einsum(einsum, size, data, out.parts[rank].data);
    }
    return out;
}

static void check_forward(test_case *t, const ms_einsum_choice *choice)
{
    const ms_einsum *einsum = &t->problem.einsum;
    const ms_global_tensor *output = &t->problem.output;
    const ms_sharded_tensor *operands[MS_EINSUM_MAX_INPUTS];
    for (int i = 0; i < einsum->num_inputs; i++) {
        ms_sharded_tensor cut =
            ms_sharded_tensor_cut(t->cx->arena, &t->mesh, &t->problem.inputs[i],
                                  &t->problem.given[i], t->whole[i], &t->rng);
        t->inputs[i] = moved(t, &cut, &choice->inputs[i]);
        operands[i] = &t->inputs[i];
    }
    long num = ms_global_tensor_elements(output);
    double *want = MS_NEW_ARRAY(t->cx->arena, num, double);
    ms_dense_einsum(einsum, t->size, t->whole, want);
    ms_sharded_tensor out = executed(t, einsum, operands, output, &choice->output.from);
    check_equal(t, "output", ms_sharded_tensor_gather(t->cx->arena, &out), want, num);
    ms_sharded_tensor last = moved(t, &out, &choice->output);
    check_equal(t, "moved output", ms_sharded_tensor_gather(t->cx->arena, &last), want,
                num);
}

static void check_gradient(test_case *t, const ms_einsum_input_gradient *gradient,
                           int input, const ms_sharded_tensor *seed,
                           const double *whole_seed)
{
    const ms_global_tensor *tensor = &t->problem.inputs[input];
    const ms_sharded_tensor *operands[MS_EINSUM_MAX_INPUTS];
    const double *whole[MS_EINSUM_MAX_INPUTS];
    for (int i = 0; i < gradient->einsum.num_inputs; i++) {
        operands[i] = i == input ? seed : &t->inputs[i];
        whole[i] = i == input ? whole_seed : t->whole[i];
    }
    long num = ms_global_tensor_elements(tensor);
    double *want = MS_NEW_ARRAY(t->cx->arena, num, double);
    ms_dense_einsum(&gradient->einsum, t->size, whole, want);
    ms_sharded_tensor made =
        executed(t, &gradient->einsum, operands, tensor, &gradient->move.from);
    ms_sharded_tensor last = moved(t, &made, &gradient->move);
    check_equal(t, "gradient", ms_sharded_tensor_gather(t->cx->arena, &last), want, num);
    for (int axis = 0; axis < t->mesh.num_axes; axis++) {
        ms_placement at = t->problem.given[input].at[axis];
        assert_true(ms_placement_equal(last.spec.at[axis],
                                       at.kind == MS_SHARD ? at : ms_replicate));
    }
}

static void check_backward(test_case *t, const ms_einsum_choice *choice)
{
    ms_einsum_backward backward;
    ms_einsum_derive_backward(t->cx->arena, &t->problem, choice, &backward);
    const double *whole_seed = random_values(t, &t->problem.output);
    ms_sharded_tensor cut =
        ms_sharded_tensor_cut(t->cx->arena, &t->mesh, &t->problem.output,
                              &backward.output.from, whole_seed, &t->rng);
    ms_sharded_tensor seed = moved(t, &cut, &backward.output);
    for (int i = 0; i < t->problem.einsum.num_inputs; i++)
        check_gradient(t, &backward.inputs[i], i, &seed, whole_seed);
}

/* ---- cases ---- */

/* A random way to shard the computation of the einsum over mesh axis `axis`. Often it is
 * the placement that one input already has on this axis, so that strided shards and
 * partial sums are used without moving them. */
static ms_spread random_spread(test_case *t, int axis)
{
    const ms_einsum *einsum = &t->problem.einsum;
    int input = (int)below(t, einsum->num_inputs);
    ms_placement at = t->problem.given[input].at[axis];
    long draw = below(t, 4);
    if (draw == 0)
        return (ms_spread){.letter = MS_WHOLE};
    if (draw < 3 && at.kind == MS_PARTIAL_SUM)
        return (ms_spread){.letter = MS_LINEAR, .input = (signed char)input};
    if (draw < 3 && at.kind == MS_SHARD)
        return (ms_spread){.letter = at.dim, .split_factor = at.split_factor};
    long letter = below(t, (long)strlen(einsum->letters));
    return (ms_spread){.letter = einsum->letters[letter]};
}

static void choose(test_case *t, ms_einsum_choice *out)
{
    if (t->number % CHOSEN_EVERY == 0) {
        ms_einsum_strategy strategy;
        assert_true(ms_einsum_choose(t->cx->arena, &t->problem, &strategy));
        *out = strategy.chosen;
        return;
    }
    ms_spread spread[MS_MAX_AXES] = {0};
    for (int axis = 0; axis < t->mesh.num_axes; axis++)
        spread[axis] = random_spread(t, axis);
    assert_true(ms_einsum_price(t->cx->arena, &t->problem, spread, out));
}

static void open_world(world *w)
{
    const ms_stack *stack;
    w->cx = test_cx();
    ASSERT_OK(ms_cluster_load(w->cx, "hgx-h100", &w->cluster), w->cx);
    ASSERT_OK(ms_profile_load(w->cx, w->cluster->device.profile, &w->profile), w->cx);
    ASSERT_OK(ms_stack_load(w->cx, "generic", &stack), w->cx);
    ASSERT_OK(ms_pricer_make(w->cx, w->cluster, w->profile, stack, MS_BF16, &w->pricer),
              w->cx);
}

static void run_case(const world *w, uint64_t number)
{
    test_case *t = MS_NEW(w->cx->arena, test_case);
    t->cx = w->cx;
    t->number = number;
    t->rng = ms_rng_split(ms_rng_seed(20260101), number);
    random_mesh(t);
    random_einsum(t);
    t->problem.mesh = &t->mesh;
    ms_collective_prices prices;
    ASSERT_OK(ms_collective_prices_make(w->cx, &t->mesh, w->cluster, w->profile, &prices),
              w->cx);
    t->problem.prices = &prices;
    t->problem.is_direct = number % 8 != 0;
    t->problem.pricer = &w->pricer;
    for (int i = 0; i < t->problem.einsum.num_inputs; i++) {
        t->problem.given[i] = random_spec(t, &t->problem.inputs[i], true);
        t->whole[i] = random_values(t, &t->problem.inputs[i]);
    }
    if (below(t, 3) == 0) {
        t->wanted = random_spec(t, &t->problem.output, false);
        t->problem.wanted = &t->wanted;
    }
    ms_einsum_choice choice;
    choose(t, &choice);
    check_forward(t, &choice);
    check_backward(t, &choice);
}

static void sharded_einsums_equal_whole_ones_forward_and_backward(void **state)
{
    (void)state;
    world w;
    open_world(&w);
    ms_arena_mark mark = ms_arena_save(w.cx->arena);
    for (uint64_t number = 0; number < NUM_CASES; number++) {
        run_case(&w, number);
        ms_arena_rewind(w.cx->arena, mark);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharded_einsums_equal_whole_ones_forward_and_backward),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
