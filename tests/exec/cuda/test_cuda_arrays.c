/* Tests of CUDA kernels on arrays (copies, conversions, sums, AdamW, initial values):
 * every element has the bits that the CPU computes, both emulated and on a GPU. */
#include "exec/cpu/kernels.h"
#include "exec/cuda/cuda_arrays.h"
#include "exec/cuda/cuda_initialise.h"
#include "exec/cuda/cuda_sort.h"
#include "exec/params/names.h"
#include "tests/support/cuda_cases.h"
#include "tests/support/cuda_emulated.h"
#include "tests/test.h"

static const ms_scalar scalars[] = {MS_SCALAR_FP32, MS_SCALAR_FP64, MS_SCALAR_BF16};
#define NUM_SCALARS (sizeof scalars / sizeof *scalars)

static const long counts[] = {0, 1, 3, 8, 61, 1024, 4099};
#define NUM_COUNTS (sizeof counts / sizeof *counts)

/* An array in GPU memory that begins `shift` elements after a multiple of 256 bytes and
 * ends where the allocation ends. */
typedef struct array {
    ms_scalar scalar;
    long count;
    void *data;
    double *values; /* the array's values, after rounding to its type */
} array;

static array make_array(ms_arena *arena, ms_rng *rng, ms_scalar scalar, long count,
                        long shift)
{
    size_t bytes = ms_scalar_bytes(scalar);
    array x = {.scalar = scalar,
               .count = count,
               .values = MS_NEW_ARRAY(arena, count + 1, double)};
    char *block = ms_arena_alloc(arena, (size_t)(count + shift) * bytes + 256);
    x.data = block + (256 - (uintptr_t)block % 256) % 256 + (size_t)shift * bytes;
    for (long i = 0; i < count; i++)
        x.values[i] = 4 * ms_rng_uniform(rng) - 2;
    ms_case_store(scalar, x.data, x.values, count);
    ms_case_load(scalar, x.values, x.data, count);
    return x;
}

/* Rounds x to the type in which a scalar type is summed. */
static double in_sums(ms_scalar scalar, double x)
{
    return scalar == MS_SCALAR_FP64 ? x : (double)(float)x;
}

/* Expects that each element is `want` rounded to the array's type. */
static void expect(ms_arena *arena, const array *x, const double *want)
{
    double *got = MS_NEW_ARRAY(arena, x->count + 1, double),
           *rounded = MS_NEW_ARRAY(arena, x->count + 1, double);
    void *memory = MS_NEW_ARRAY(arena, x->count + 1, double);
    ms_case_load(x->scalar, got, x->data, x->count);
    ms_case_store(x->scalar, memory, want, x->count);
    ms_case_load(x->scalar, rounded, memory, x->count);
    for (long i = 0; i < x->count; i++)
        if (got[i] != rounded[i])
            fail_msg("%s, element %ld of %ld: %.17g, not %.17g",
                     ms_scalar_names[x->scalar], i, x->count, got[i], rounded[i]);
}

/* ---- element by element ---- */

typedef struct array_case {
    ms_arena *arena;
    ms_rng *rng;
    ms_scalar scalar;
    long count, shift;
} array_case;

static void for_arrays(uint64_t seed, void (*check)(const array_case *at))
{
    ms_rng rng = ms_rng_seed(seed);
    for (size_t i = 0; i < NUM_COUNTS * NUM_SCALARS * 2; i++) {
        array_case at = {.arena = test_cx()->arena,
                         .rng = &rng,
                         .scalar = scalars[i % NUM_SCALARS],
                         .count = counts[i / NUM_SCALARS % NUM_COUNTS],
                         .shift = (long)(i / NUM_SCALARS / NUM_COUNTS)};
        check(&at);
    }
}

static array make_for(const array_case *at, ms_scalar scalar, long shift)
{
    return make_array(at->arena, at->rng, scalar, at->count, shift);
}

static void fill_and_scale(const array_case *at)
{
    ms_scalar s = at->scalar;
    array x = make_for(at, s, at->shift);
    double factor = 1.0 / 3;
    ms_cuda_array_scale(NULL, s, x.data, factor, x.count);
    for (long i = 0; i < x.count; i++)
        x.values[i] = in_sums(s, x.values[i] * in_sums(s, factor));
    expect(at->arena, &x, x.values);
    ms_cuda_array_fill(NULL, s, x.data, factor, x.count);
    for (long i = 0; i < x.count; i++)
        x.values[i] = in_sums(s, factor);
    expect(at->arena, &x, x.values);
}

static void fills_and_scales(void **state)
{
    (void)state;
    for_arrays(41, fill_and_scale);
}

static void add(const array_case *at)
{
    ms_scalar s = at->scalar;
    array x = make_for(at, s, 0), y = make_for(at, s, at->shift);
    ms_cuda_array_add(NULL, s, x.data, y.data, x.count);
    for (long i = 0; i < x.count; i++)
        x.values[i] = in_sums(s, x.values[i] + y.values[i]);
    expect(at->arena, &x, x.values);
}

static void additions(void **state)
{
    (void)state;
    for_arrays(42, add);
}

static void round_sum(const array_case *at)
{
    ms_scalar sums = at->scalar == MS_SCALAR_BF16 ? MS_SCALAR_FP32 : at->scalar;
    array x = make_for(at, sums, at->shift), plus = make_for(at, at->scalar, 0),
          y = make_for(at, at->scalar, 0);
    ms_rounded_sum sum = {at->scalar, y.data, x.data, NULL, x.count};
    ms_cuda_array_round_sum(NULL, &sum);
    expect(at->arena, &y, x.values);
    sum.plus = plus.data;
    ms_cuda_array_round_sum(NULL, &sum);
    for (long i = 0; i < x.count; i++)
        x.values[i] = in_sums(at->scalar, x.values[i] + plus.values[i]);
    expect(at->arena, &y, x.values);
}

static void sums_are_rounded(void **state)
{
    (void)state;
    for_arrays(50, round_sum);
}

static void cast(const array_case *at)
{
    array x = make_for(at, at->scalar, 0);
    for (size_t i = 0; i < NUM_SCALARS; i++) {
        array y = make_for(at, scalars[i], at->shift);
        const ms_cuda_cast how = {.to_scalar = scalars[i],
                                  .from_scalar = at->scalar,
                                  .to = y.data,
                                  .from = x.data,
                                  .count = x.count};
        ms_cuda_array_cast(NULL, &how);
        expect(at->arena, &y, x.values);
    }
}

static void casts(void **state)
{
    (void)state;
    for_arrays(49, cast);
}

/* ---- sums ---- */

/* Sums all elements (or their squares) pairwise, which keeps rounding errors small. */
static double sum_of(const double *x, long count, bool squared)
{
    if (count == 0)
        return 0;
    if (count == 1)
        return squared ? *x * *x : *x;
    return sum_of(x, count / 2, squared) +
           sum_of(x + count / 2, count - count / 2, squared);
}

static double add_to(const array *x, double slot, bool squared)
{
    double scratch[MS_CUDA_SUM_BLOCKS];
    memset(scratch, 0xff, sizeof scratch);
    assert_int_equal(sizeof scratch, MS_CUDA_SUM_BYTES);
    if (squared)
        ms_cuda_array_add_squares(NULL, x->scalar, &slot, x->data, x->count, scratch);
    else
        ms_cuda_array_add_sum(NULL, x->scalar, &slot, x->data, x->count, scratch);
    return slot;
}

static void check_sum(ms_rng *rng, ms_scalar scalar, long count, bool squared)
{
    ms_arena *arena = test_cx()->arena;
    array x = make_array(arena, rng, scalar, count, 0),
          moved = make_array(arena, rng, scalar, count, 1);
    memcpy(moved.data, x.data, (size_t)count * ms_scalar_bytes(scalar));
    double want = 1 + sum_of(x.values, count, squared);
    ms_cuda_emulated_set_seed(0);
    double got = add_to(&x, 1, squared);
    /* partial sums grow like sqrt(count), and each addition rounds them by 2^-53 */
    double scale = 1 + 2 * sqrt((double)count) + fabs(want);
    if (!(fabs(got - want) <= 1e-14 * scale))
        fail_msg("%s, %ld: %.17g, not %.17g", ms_scalar_names[scalar], count, got, want);
    ms_cuda_emulated_set_seed(99);
    assert_true(add_to(&x, 1, squared) == got);
    assert_true(add_to(&moved, 1, squared) == got);
}

static void sums_are_added_in_one_order(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(43);
    for (size_t i = 0; i < NUM_COUNTS * NUM_SCALARS; i++) {
        check_sum(&rng, scalars[i % NUM_SCALARS], counts[i / NUM_SCALARS], false);
        check_sum(&rng, scalars[i % NUM_SCALARS], counts[i / NUM_SCALARS], true);
    }
    /* so many fp64 elements that each block of threads loops twice */
    check_sum(&rng, MS_SCALAR_FP64, MS_CUDA_SUM_BLOCKS * 256L * 2 * 4 + 12345, true);
}

/* ---- boxes ---- */

/* Draws a box of random size within two arrays, with or without gaps between its rows. */
static ms_box_copy random_box(ms_rng *rng, long *to_count, long *from_count)
{
    ms_box_copy box = {.run = 1 + (long)ms_rng_below(rng, 9),
                       .element_bytes = (size_t)1 << ms_rng_below(rng, 5)};
    const long gaps[] = {0, 1, 8};
    if (ms_rng_below(rng, 2) == 0)
        box.run *= 8;
    *to_count = *from_count = box.run;
    for (int d = MS_BOX_DIMS; d-- > 0;) {
        box.num[d] = 1 + (long)ms_rng_below(rng, 4);
        box.to_stride[d] = *to_count + gaps[ms_rng_below(rng, 3)];
        box.from_stride[d] = *from_count + gaps[ms_rng_below(rng, 3)];
        *to_count = box.num[d] * box.to_stride[d];
        *from_count = box.num[d] * box.from_stride[d];
    }
    return box;
}

static void copy_naively(const ms_box_copy *box, char *to, const char *from)
{
    size_t bytes = box->element_bytes;
    long num_runs = box->num[0] * box->num[1] * box->num[2] * box->num[3];
    for (long i = 0; i < num_runs; i++) {
        long t = 0, f = 0, left = i;
        for (int d = MS_BOX_DIMS; d-- > 0; left /= box->num[d]) {
            t += left % box->num[d] * box->to_stride[d];
            f += left % box->num[d] * box->from_stride[d];
        }
        memcpy(to + (size_t)t * bytes, from + (size_t)f * bytes,
               (size_t)box->run * bytes);
    }
}

static char *bytes_at(ms_arena *arena, size_t count, size_t shift)
{
    char *block = ms_arena_alloc(arena, count + shift + 256);
    return block + (256 - (uintptr_t)block % 256) % 256 + shift;
}

static void boxes_are_copied(void **state)
{
    (void)state;
    ms_rng rng = ms_rng_seed(44);
    for (int i = 0; i < 300; i++) {
        ms_arena *arena = test_cx()->arena;
        long to_count, from_count;
        ms_box_copy box = random_box(&rng, &to_count, &from_count);
        size_t bytes = (size_t)to_count * box.element_bytes,
               given = (size_t)from_count * box.element_bytes,
               shift = i % 2 == 0 ? 0 : box.element_bytes;
        char *to = bytes_at(arena, bytes, shift), *want = bytes_at(arena, bytes, 0),
             *from = bytes_at(arena, given, 0);
        for (size_t j = 0; j < given; j++)
            from[j] = (char)ms_rng_below(&rng, 256);
        memset(to, 0x55, bytes);
        memset(want, 0x55, bytes);
        box.to = to;
        box.from = from;
        ms_cuda_array_copy_box(NULL, &box);
        copy_naively(&box, want, from);
        assert_memory_equal(to, want, bytes);
    }
}

static void an_empty_box_is_no_work(void **state)
{
    (void)state;
    unsigned long before = ms_cuda_emulated_num_launches();
    ms_box_copy box = {.num = {1, 0, 1, 1}, .run = 4, .element_bytes = 4};
    ms_cuda_array_copy_box(NULL, &box);
    box = (ms_box_copy){.num = {1, 1, 1, 1}, .run = 0, .element_bytes = 4};
    ms_cuda_array_copy_box(NULL, &box);
    assert_true(ms_cuda_emulated_num_launches() == before);
}

/* ---- the optimizer ---- */

typedef struct optimizer {
    array weight, gradient, first, second;
} optimizer;

static optimizer make_optimizer(ms_arena *arena, ms_rng *rng, ms_scalar scalar,
                                long count, long shift)
{
    optimizer o = {make_array(arena, rng, scalar, count, shift),
                   make_array(arena, rng, scalar, count, 0),
                   make_array(arena, rng, scalar, count, shift),
                   make_array(arena, rng, scalar, count, 0)};
    memset(o.first.data, 0, (size_t)count * ms_scalar_bytes(scalar));
    memset(o.second.data, 0, (size_t)count * ms_scalar_bytes(scalar));
    return o;
}

static ms_update update_of(const optimizer *o)
{
    return (ms_update){.scalar = o->weight.scalar,
                       .weight = o->weight.data,
                       .gradient = o->gradient.data,
                       .first_moment = o->first.data,
                       .second_moment = o->second.data,
                       .count = o->weight.count};
}

static void same_bytes(const array *a, const array *b)
{
    assert_memory_equal(a->data, b->data, (size_t)a->count * ms_scalar_bytes(a->scalar));
}

/* Compares an AdamW step with the CPU's bit by bit: the kernel rounds products before
 * adding them (exec/cuda/cuda_device.cuh), and divides and takes roots as IEEE 754. */
static void run_optimizer(ms_real_type type, long count, long shift)
{
    ms_precision precision = ms_precision_of(type);
    ms_scalar state = precision.moment;
    const ms_kernels *cpu =
        ms_cpu_kernels(state == MS_SCALAR_FP64 ? MS_REAL_FP64 : MS_REAL_FP32);
    ms_arena *arena = test_cx()->arena;
    ms_rng one = ms_rng_seed(45), two = one;
    optimizer gpu = make_optimizer(arena, &one, state, count, shift),
              want = make_optimizer(arena, &two, state, count, 0);
    array rounded = make_array(arena, &one, precision.real, count, shift);
    ms_update update = update_of(&gpu);
    update.scalar = precision.real;
    if (precision.has_master) {
        update.master = gpu.weight.data;
        update.weight = rounded.data;
    }
    ms_adamw how = {.learning_rate = 0.01,
                    .beta1 = 0.9,
                    .beta2 = 0.95,
                    .epsilon = 1e-8,
                    .weight_decay = 0.1,
                    .gradient_scale = 0.7};
    for (how.step = 1; how.step <= 4; how.step++) {
        ms_cuda_array_adamw(NULL, &how, &update);
        cpu->adamw(&how, want.weight.data, want.gradient.data, want.first.data,
                   want.second.data, count);
    }
    same_bytes(&gpu.weight, &want.weight);
    same_bytes(&gpu.first, &want.first);
    same_bytes(&gpu.second, &want.second);
    ms_case_load(state, want.weight.values, want.weight.data, count);
    if (precision.has_master)
        expect(arena, &rounded, want.weight.values);
}

static void steps_of_the_optimizer_are_those_of_cpus(void **state)
{
    (void)state;
    for (ms_real_type type = 0; type < MS_NUM_REAL_TYPES; type++)
        for (size_t c = 1; c < NUM_COUNTS; c++)
            run_optimizer(type, counts[c], (long)c % 2);
}

/* ---- initial values ---- */

static double value_at(const ms_initial_piece *how, const ms_initial *initial,
                       long element)
{
    long place = how->offset;
    for (int d = how->num_dims; d-- > 0;) {
        place += how->stride[d] * (how->start[d] + element % how->shape[d]);
        element /= how->shape[d];
    }
    return place < how->count
               ? ms_initial_value(initial, how->key, place, how->is_norm, how->is_bias)
               : 0;
}

/* Expects initial values: uniform ones bit by bit, normal ones within 5 units of 2^-52. A
 * GPU's log, root and cosine are within 1, 0 and 2 units in the last place (CUDA C++
 * Programming Guide, table of double-precision functions), the CPU's within 1, and three
 * products round; then the value is rounded to its type. */
static void expect_initial(ms_arena *arena, const array *x, bool is_uniform)
{
    const double near = is_uniform ? 0.0 : 5 * 0x1p-52;
    double *got = MS_NEW_ARRAY(arena, x->count + 1, double),
           *bounds[2] = {MS_NEW_ARRAY(arena, x->count + 1, double),
                         MS_NEW_ARRAY(arena, x->count + 1, double)};
    void *memory = MS_NEW_ARRAY(arena, x->count + 1, double);
    ms_case_load(x->scalar, got, x->data, x->count);
    for (int side = 0; side < 2; side++) {
        for (long i = 0; i < x->count; i++)
            bounds[side][i] = in_sums(x->scalar, x->values[i] + (side * 2 - 1) * near *
                                                                    fabs(x->values[i]));
        ms_case_store(x->scalar, memory, bounds[side], x->count);
        ms_case_load(x->scalar, bounds[side], memory, x->count);
    }
    for (long i = 0; i < x->count; i++)
        if (!(bounds[0][i] <= got[i] && got[i] <= bounds[1][i]))
            fail_msg("%s, element %ld of %ld: %.17g, not %.17g",
                     ms_scalar_names[x->scalar], i, x->count, got[i], x->values[i]);
}

static void initial_values_are_those_of_the_names(void **state)
{
    (void)state;
    const ms_initial initial = {.seed = 7, .deviation = 0.02, .spread = 0.3};
    uint64_t key = ms_initial_key(&initial, "model.layers.3.mlp.up_proj.weight");
    const ms_initial_piece pieces[] = {
        {.num_dims = 2, .shape = {30, 70}, .stride = {70, 1}, .number = 2100},
        /* columns of a transposed tensor, from the middle of a row on, with padding */
        {.num_dims = 2,
         .shape = {9, 40},
         .start = {4, 10},
         .stride = {1, 100},
         .offset = 50,
         .count = 4000,
         .first = 77,
         .number = 200},
        {.num_dims = 1, .shape = {33}, .stride = {1}, .number = 33, .is_norm = true},
        {.num_dims = 1,
         .shape = {33},
         .start = {33},
         .stride = {1},
         .first = 5,
         .number = 28,
         .is_bias = true},
        /* one expert of three */
        {.num_dims = 4,
         .shape = {3, 2, 5, 4},
         .start = {6, 0, 5, 0},
         .stride = {0, 40, 4, 1},
         .first = 40,
         .number = 40},
        {.num_dims = 4,
         .shape = {2, 3, 4, 5},
         .stride = {1L << 40, 60, 5, 1},
         .number = 120},
        {.num_dims = 1, .shape = {5}, .stride = {1}, .number = 0},
    };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        for (size_t s = 0; s < NUM_SCALARS; s++) {
            ms_arena *arena = test_cx()->arena;
            ms_rng rng = ms_rng_seed(46);
            ms_initial_piece how = pieces[i];
            how.key = key;
            how.deviation = initial.deviation;
            how.spread = initial.spread;
            how.count = how.count > 0 ? how.count : 1L << 50;
            array x = make_array(arena, &rng, scalars[s], how.number, 0);
            ms_cuda_initialise(NULL, scalars[s], x.data, &how);
            for (long j = 0; j < how.number; j++)
                x.values[j] = value_at(&how, &initial, how.first + j);
            expect_initial(arena, &x, how.is_norm || how.is_bias);
        }
    }
}

/* ---- orders ---- */

static void check_order(ms_rng *rng, ms_scalar scalar, long num_items, long num_keys)
{
    ms_arena *arena = test_cx()->arena;
    array x = make_array(arena, rng, scalar, num_items, 0);
    for (long i = 0; i < num_items; i++)
        x.values[i] = (double)ms_rng_below(rng, (uint64_t)num_keys);
    ms_case_store(scalar, x.data, x.values, num_items);
    int *place = MS_NEW_ARRAY(arena, num_items, int);
    long *got = MS_NEW_ARRAY(arena, num_keys, long),
         *next = MS_NEW_ARRAY(arena, num_keys + 1, long);
    const ms_cuda_order order = {
        .scalar = scalar,
        .keys = x.data,
        .num_items = num_items,
        .num_keys = num_keys,
        .place = place,
        .workspace = ms_arena_alloc(arena, ms_cuda_order_bytes(num_items, num_keys))};
    ms_cuda_order_places(NULL, &order);
    ms_cuda_order_counts(NULL, &order, got);
    for (long i = 0; i < num_items; i++)
        next[(long)x.values[i] + 1]++;
    for (long i = 0; i < num_keys; i++)
        ASSERT_INT(got[i], next[i + 1]);
    for (long i = 0; i < num_keys; i++)
        next[i + 1] += next[i];
    for (long i = 0; i < num_items; i++)
        ASSERT_INT(place[i], next[(long)x.values[i]]++);
}

static void orders_by_key_are_stable(void **state)
{
    (void)state;
    const long items[] = {1, 2, 255, 256, 257, 3000}, keys[] = {1, 2, 8, 300, 4096};
    ms_rng rng = ms_rng_seed(47);
    for (size_t n = 0; n < sizeof items / sizeof *items; n++) {
        ms_cuda_emulated_set_seed(n);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            bool exact_in_bf16 = keys[k] <= 256;
            check_order(&rng, exact_in_bf16 ? MS_SCALAR_BF16 : MS_SCALAR_FP32, items[n],
                        keys[k]);
            check_order(&rng, MS_SCALAR_FP64, items[n], keys[k]);
        }
    }
}

static void no_items_have_no_keys(void **state)
{
    (void)state;
    long got[3] = {5, 6, 7};
    int room[8];
    ms_cuda_order order = {.num_keys = 3, .workspace = room};
    assert_true(ms_cuda_order_bytes(0, 3) <= sizeof room);
    ms_cuda_order_places(NULL, &order);
    ms_cuda_order_counts(NULL, &order, got);
    for (int i = 0; i < 3; i++)
        ASSERT_INT(got[i], 0);
}

static void check_sort(ms_rng *rng, long num_items, long num_keys)
{
    ms_arena *arena = test_cx()->arena;
    int *key = MS_NEW_ARRAY(arena, num_items, int),
        *sorted = MS_NEW_ARRAY(arena, num_items, int);
    for (long i = 0; i < num_items; i++) {
        uint64_t bound = ms_rng_below(rng, 2) == 0 ? 20 : (uint64_t)num_keys;
        key[i] = (int)(num_keys - 1 - (long)ms_rng_below(rng, bound) % num_keys);
        sorted[i] = -1;
    }
    const ms_cuda_sort sort = {.keys = key,
                               .num_items = num_items,
                               .num_keys = num_keys,
                               .sorted = sorted,
                               .workspace =
                                   ms_arena_alloc(arena, ms_cuda_sort_bytes(num_items))};
    ms_cuda_sort_items(NULL, &sort);
    assert_true(sorted[0] >= 0 && sorted[0] < num_items);
    for (long i = 1; i < num_items; i++) {
        int a = sorted[i - 1], b = sorted[i];
        assert_true(b >= 0 && b < num_items);
        assert_true(key[a] < key[b] || (key[a] == key[b] && a < b));
    }
}

static void sorts_by_many_keys_are_stable(void **state)
{
    (void)state;
    const long items[] = {1, 256, 700}, keys[] = {1, 2, 512, 513, 262144, 262145};
    ms_rng rng = ms_rng_seed(48);
    for (size_t n = 0; n < sizeof items / sizeof *items; n++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            check_sort(&rng, items[n], keys[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_and_scales),
        cmocka_unit_test(additions),
        cmocka_unit_test(casts),
        cmocka_unit_test(sums_are_rounded),
        cmocka_unit_test(sums_are_added_in_one_order),
        cmocka_unit_test(boxes_are_copied),
        cmocka_unit_test(an_empty_box_is_no_work),
        cmocka_unit_test(steps_of_the_optimizer_are_those_of_cpus),
        cmocka_unit_test(initial_values_are_those_of_the_names),
        cmocka_unit_test(orders_by_key_are_stable),
        cmocka_unit_test(no_items_have_no_keys),
        cmocka_unit_test(sorts_by_many_keys_are_stable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
