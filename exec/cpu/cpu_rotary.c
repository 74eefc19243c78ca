/* CPU kernels: rotary embedding (Su et al. 2021), keys of multi-head latent attention. */
#include "exec/core/rotary.h"
#include "exec/cpu/cpu.h"

#include <math.h>
#include <string.h>

#define EXACT_EVERY 32 /* positions after which cosines and sines are computed anew */

/* Cosine and sine of position x frequency. Two products per value give those of the next
 * position; exact ones every EXACT_EVERY positions keep the error below 1e-14. */
typedef struct angles {
    ms_rotary how;
    long count;
    bool inverse;
    long position; /* -1 before the first position */
    double *cosine, *sine, *step_cosine, *step_sine, *frequency;
    ms_real *real_cosine, *real_sine;
} angles;

#define ANGLE_ARRAYS 7

size_t MS_TYPED(ms_cpu_rotary_bytes)(const ms_program *program, const ms_node *node)
{
    (void)program;
    return ANGLE_ARRAYS * sizeof(double) * (size_t)(node->rotary_width / 2);
}

static angles first_angles(const ms_op_call *call)
{
    angles a = {.how = ms_rotary_of(call->program->model, call->node),
                .count = call->node->rotary_width / 2,
                .inverse = call->node->inverse,
                .position = -1};
    double *memory = call->workspace;
    double **arrays[] = {&a.cosine, &a.sine, &a.step_cosine, &a.step_sine, &a.frequency};
    for (int i = 0; i < 5; i++)
        *arrays[i] = memory + i * a.count;
    a.real_cosine = (ms_real *)(memory + 5 * a.count);
    a.real_sine = (ms_real *)(memory + 6 * a.count);
    for (long i = 0; i < a.count; i++) {
        a.frequency[i] = ms_rotary_frequency(&a.how, i);
        a.step_cosine[i] = cos(a.frequency[i]);
        a.step_sine[i] = sin(a.frequency[i]);
    }
    return a;
}

static void move_angles_to(angles *a, long position)
{
    if (position == a->position)
        return;
    if (position != a->position + 1 || position % EXACT_EVERY == 0) {
        for (long i = 0; i < a->count; i++) {
            a->cosine[i] = cos((double)position * a->frequency[i]);
            a->sine[i] = sin((double)position * a->frequency[i]);
        }
    } else {
        for (long i = 0; i < a->count; i++) {
            double cosine = a->cosine[i], sine = a->sine[i];
            a->cosine[i] = cosine * a->step_cosine[i] - sine * a->step_sine[i];
            a->sine[i] = sine * a->step_cosine[i] + cosine * a->step_sine[i];
        }
    }
    a->position = position;
    for (long i = 0; i < a->count; i++) {
        double sine = a->how.amplitude * a->sine[i];
        a->real_cosine[i] = (ms_real)(a->how.amplitude * a->cosine[i]);
        a->real_sine[i] = (ms_real)(a->inverse ? -sine : sine);
    }
}

/* Rotates neighbours among the first 2 x a->count elements of a row. */
static void rotate_neighbours(const angles *a, const ms_real *x, ms_real *out)
{
    for (long i = 0; i < a->count; i++) {
        ms_real first = x[2 * i], second = x[2 * i + 1];
        out[2 * i] = first * a->real_cosine[i] - second * a->real_sine[i];
        out[2 * i + 1] = second * a->real_cosine[i] + first * a->real_sine[i];
    }
}

/* Rotates the first 2 x a->count elements of a row, halves against each other. */
MS_WIDE static void rotate_halves(const angles *a, const ms_real *restrict x,
                                  ms_real *restrict out)
{
    const ms_real *restrict cosine = a->real_cosine, *restrict sine = a->real_sine;
    const ms_real *high = x + a->count;
    ms_real *to_high = out + a->count;
    for (long i = 0; i < a->count; i++) {
        ms_real first = x[i], second = high[i];
        out[i] = first * cosine[i] - second * sine[i];
        to_high[i] = second * cosine[i] + first * sine[i];
    }
}

/* Rotates 2 x a->count elements of each row of `width`: the last, or the first ones. */
static void rotate_rows(const angles *a, const ms_real *x, ms_real *out, long num_rows,
                        long width)
{
    long rotated = 2 * a->count, kept = width - rotated;
    long from = a->how.leading ? 0 : kept, kept_from = a->how.leading ? rotated : 0;
    for (long row = 0; row < num_rows; row++, x += width, out += width) {
        memcpy(out + kept_from, x + kept_from, (size_t)kept * sizeof *out);
        if (a->how.interleaved)
            rotate_neighbours(a, x + from, out + from);
        else
            rotate_halves(a, x + from, out + from);
    }
}

void MS_TYPED(ms_cpu_rotary)(const ms_op_call *call)
{
    const ms_local *x = call->in[0];
    const char *dims = call->program->tensors[call->node->in[0]].dims;
    long axis = strchr(dims, MS_DIM_SEQUENCE) - dims, width = ms_local_last(x);
    long outer = 1, length = x->shape[axis], inner = 1;
    for (long i = 0; i < axis; i++)
        outer *= x->shape[i];
    for (long i = axis + 1; i < x->num_dims; i++)
        inner *= x->shape[i];
    angles a = first_angles(call);
    for (long s = 0; s < length; s++) {
        long position = ms_cpu_position(call, x->start[axis] + s);
        for (long b = 0; b < outer; b++) {
            long start = ms_cpu_start(call, x->start[0] + b, position);
            move_angles_to(&a, position - start);
            long at = (b * length + s) * inner;
            rotate_rows(&a, ms_cpu_in(call, 0) + at, ms_cpu_out(call, 0) + at,
                        inner / width, width);
        }
    }
}

/* ---- keys of multi-head latent attention (DeepSeek-V2, section 2.1) ---- */

typedef struct latent {
    long num_rows, num_heads, nope, rope, value; /* num_rows: batch x sequence x heads */
} latent;

static latent read_latent(const ms_local *k, const ms_local *v, const ms_local *rope)
{
    long width = ms_local_last(rope);
    return (latent){.num_rows = ms_local_leading(k),
                    .num_heads = k->shape[2],
                    .nope = ms_local_last(k) - width,
                    .rope = width,
                    .value = ms_local_last(v)};
}

static void copy_reals(ms_real *to, const ms_real *from, long count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

void MS_TYPED(ms_cpu_mla_keys)(const ms_op_call *call)
{
    latent l = read_latent(call->out[0], call->out[1], call->in[1]);
    const ms_real *up = ms_cpu_in(call, 0), *rope = ms_cpu_in(call, 1);
    ms_real *k = ms_cpu_out(call, 0), *v = ms_cpu_out(call, 1);
    for (long row = 0; row < l.num_rows; row++) {
        copy_reals(k, up, l.nope);
        copy_reals(k + l.nope, rope + row / l.num_heads * l.rope, l.rope);
        copy_reals(v, up + l.nope, l.value);
        up += l.nope + l.value;
        k += l.nope + l.rope;
        v += l.value;
    }
}

void MS_TYPED(ms_cpu_mla_keys_grad)(const ms_op_call *call)
{
    latent l = read_latent(call->in[0], call->in[1], call->out[1]);
    const ms_real *gk = ms_cpu_in(call, 0), *gv = ms_cpu_in(call, 1);
    ms_real *gup = ms_cpu_out(call, 0), *grope = ms_cpu_out(call, 1);
    memset(grope, 0, (size_t)call->out[1]->count * sizeof *grope);
    for (long row = 0; row < l.num_rows; row++) {
        ms_real *shared = grope + row / l.num_heads * l.rope;
        copy_reals(gup, gk, l.nope);
        copy_reals(gup + l.nope, gv, l.value);
        for (long i = 0; i < l.rope; i++)
            shared[i] += gk[l.nope + i];
        gup += l.nope + l.value;
        gk += l.nope + l.rope;
        gv += l.value;
    }
}
