/* Device memory for calibration measurements, filled with numbers. */
#include "exec/measure/measure_priv.h"

#include "base/number.h"

#include <assert.h>
#include <math.h>

#define BLOCK_ELEMENTS (1L << 20)

static ms_status allocate_bytes(const ms_measurer *m, size_t bytes, void **out)
{
    *out = m->how->backend->allocate(m->device, bytes);
    if (*out == NULL)
        return ms_fail(m->cx, MS_EIO, MS_NOWHERE,
                       "no memory is left for %zu bytes of calibration", bytes);
    assert(m->held->num < MS_MAX_HELD);
    m->held->memory[m->held->num] = *out;
    m->held->bytes[m->held->num++] = bytes;
    return MS_OK;
}

size_t ms_local_bytes(const ms_local *local)
{
    return (size_t)local->count * ms_scalar_bytes((ms_scalar)local->scalar);
}

static ms_status fill_by_copies(const ms_measurer *m, ms_scalar scalar,
                                const double *block, char *to, size_t bytes)
{
    const ms_array_ops *arrays = m->how->backend->arrays;
    size_t element = ms_scalar_bytes(scalar);
    size_t count = bytes / element;
    long first = count < BLOCK_ELEMENTS ? (long)count : BLOCK_ELEMENTS;
    MS_TRY(arrays->write(m->cx, m->device, scalar, to, block, first));
    for (size_t done = (size_t)first * element; done > 0 && done < bytes;) {
        size_t piece = done < bytes - done ? done : bytes - done;
        arrays->copy(m->device, to + done, to, piece);
        done += piece;
    }
    return MS_OK;
}

typedef double make_value(long i, ms_rng *rng);

static ms_status make_filled(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                             make_value *value, char **out)
{
    *out = NULL;
    if (bytes == 0)
        return MS_OK;
    void *made;
    MS_TRY(allocate_bytes(m, bytes, &made));
    *out = made;
    ms_arena_mark mark = ms_arena_save(m->cx->arena);
    double *block = MS_NEW_ARRAY(m->cx->arena, BLOCK_ELEMENTS, double);
    ms_rng rng = ms_rng_seed(11 + 100 * (uint64_t)m->rank + (uint64_t)m->held->num);
    for (long i = 0; i < BLOCK_ELEMENTS; i++)
        block[i] = value(i, &rng);
    MS_TRY(fill_by_copies(m, scalar, block, *out, bytes));
    ms_arena_rewind(m->cx->arena, mark);
    return MS_OK;
}

/* Standard normal number: bits switch as in training, and so do power and clocks; positive
 * or equal numbers need less. */
static double normal_value(long i, ms_rng *rng)
{
    (void)i;
    return ms_rng_normal(rng);
}

/* Random number in 0.05 .. 1.05: an optimizer takes square roots of its states. */
static double positive_value(long i, ms_rng *rng)
{
    (void)i;
    return 0.05 + ms_rng_uniform(rng);
}

static double zero_value(long i, ms_rng *rng)
{
    (void)i;
    (void)rng;
    return 0.0;
}

/* Expert for element i: balanced over the 4 experts of the models in measure_cases.c. */
static double expert_index(long i, ms_rng *rng)
{
    const long num_experts = 4;
    (void)rng;
    return (double)(i % num_experts);
}

ms_status ms_measurer_filled(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                             char **out)
{
    return make_filled(m, scalar, bytes, normal_value, out);
}

ms_status ms_measurer_zeros(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                            char **out)
{
    return make_filled(m, scalar, bytes, zero_value, out);
}

ms_status ms_measurer_choice(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                             char **out)
{
    return make_filled(m, scalar, bytes, expert_index, out);
}

ms_status ms_measurer_region(const ms_measurer *m, ms_scalar scalar, size_t bytes,
                             bool positive, ms_region *out)
{
    out->bytes = bytes;
    return make_filled(m, scalar, bytes, positive ? positive_value : normal_value,
                       &out->at);
}
