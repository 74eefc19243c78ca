#include "exec/runner/kernel_slowdown.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Least share of a kernel's time beside transfers; chosen above the resolution of stamps. */
#define LEAST_OVERLAP_FRAC 0.01

/* ---- moments in which transfers move ---- */

typedef struct span {
    double start_s, end_s;
} span;

typedef struct span_list {
    long num;
    span *all; /* (num), apart from each other, in order of time */
} span_list;

static int compare_spans(const void *left, const void *right)
{
    const span *a = left, *b = right;
    return (a->start_s > b->start_s) - (a->start_s < b->start_s);
}

/* Joins the transfers of all streams. */
static span_list spans_of(ms_arena *arena, const ms_recorder *recorder)
{
    span_list out = {0, MS_NEW_ARRAY(arena, recorder->num, span)};
    long num = 0;
    for (long i = 0; i < recorder->num; i++)
        if (recorder->slices[i].moves)
            out.all[num++] =
                (span){recorder->slices[i].start_s, recorder->slices[i].end_s};
    if (num > 0)
        qsort(out.all, (size_t)num, sizeof *out.all, compare_spans);
    for (long i = 0; i < num; i++) {
        span *last = out.num > 0 ? &out.all[out.num - 1] : NULL;
        if (last != NULL && out.all[i].start_s <= last->end_s)
            last->end_s = ms_max(last->end_s, out.all[i].end_s);
        else
            out.all[out.num++] = out.all[i];
    }
    return out;
}

/* Seconds of a slice in which transfers move; `from`: a span before which none does. */
static double moving_s(const span_list *spans, const ms_recorded *slice, long from)
{
    double sum_s = 0.0;
    for (long i = from; i < spans->num && spans->all[i].start_s < slice->end_s; i++)
        sum_s += ms_min(spans->all[i].end_s, slice->end_s) -
                 ms_max(spans->all[i].start_s, slice->start_s);
    return sum_s;
}

/* Seconds that a kernel of `left_s` alone takes from start_s on, if transfers take the
 * share `frac` of its speed while they move (docs/formulas 4.3). */
static double slowed_s(const span_list *spans, long from, double start_s, double left_s,
                       double frac)
{
    double now_s = start_s;
    for (long i = from; i < spans->num; i++) {
        double free_s = spans->all[i].start_s - now_s;
        if (left_s <= free_s)
            break;
        left_s -= ms_max(0.0, free_s);
        now_s = ms_max(now_s, spans->all[i].start_s);
        double slow_s = (1.0 - frac) * (spans->all[i].end_s - now_s);
        if (left_s < slow_s)
            return now_s - start_s + left_s / (1.0 - frac);
        left_s -= slow_s;
        now_s = spans->all[i].end_s;
    }
    return now_s - start_s + left_s;
}

/* ---- equal kernels ---- */

typedef struct kernel {
    const ms_recorded *slice;
    double moving_s;
    long span; /* first span that does not end before the kernel begins */
} kernel;

static bool is_kernel(const ms_recorded *slice)
{
    bool is_node = slice->kind <= MS_TASK_RECOMPUTE;
    return is_node && slice->stream == MS_STREAM_COMPUTE && !slice->waits &&
           !slice->moves;
}

static double seconds_of(const ms_recorded *slice)
{
    return slice->end_s - slice->start_s;
}

static int compare_kinds(const ms_recorded *a, const ms_recorded *b)
{
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : a->kind - b->kind;
}

/* Orders kernels by kind; equal kernels lie side by side. */
static int compare_kernels(const void *left, const void *right)
{
    const ms_recorded *a = ((const kernel *)left)->slice,
                      *b = ((const kernel *)right)->slice;
    int order = compare_kinds(a, b);
    return order != 0
               ? order
               : (a->predicted_s > b->predicted_s) - (a->predicted_s < b->predicted_s);
}

static bool is_alone(const kernel *k)
{
    return k->moving_s < LEAST_OVERLAP_FRAC * seconds_of(k->slice);
}

/* Adds equal kernels; in `out` sums stand for means until they are divided. */
static void add_equal(ms_kernel_slowdown *out, const kernel *kernels, long num,
                      const span_list *spans, double frac)
{
    double alone_s = 0.0;
    long alone = 0;
    for (long i = 0; i < num; i++) {
        alone += is_alone(&kernels[i]);
        alone_s += is_alone(&kernels[i]) ? seconds_of(kernels[i].slice) : 0.0;
    }
    out->num_alone += alone;
    out->num_overlapped += num - alone;
    for (long i = 0; i < num && alone > 0; i++) {
        const ms_recorded *slice = kernels[i].slice;
        double mean_s = alone_s / (double)alone;
        if (is_alone(&kernels[i]))
            continue;
        out->num_compared++;
        out->alone_s += mean_s;
        out->overlapped_s += seconds_of(slice);
        out->moving_s += kernels[i].moving_s;
        out->predicted_s +=
            slowed_s(spans, kernels[i].span, slice->start_s, mean_s, frac);
    }
}

static void add_sums(ms_kernel_slowdown *to, const ms_kernel_slowdown *from)
{
    to->num_alone += from->num_alone;
    to->num_overlapped += from->num_overlapped;
    to->num_compared += from->num_compared;
    to->alone_s += from->alone_s;
    to->overlapped_s += from->overlapped_s;
    to->moving_s += from->moving_s;
    to->predicted_s += from->predicted_s;
}

static void divide(ms_kernel_slowdown *s)
{
    double num = s->num_compared > 0 ? (double)s->num_compared : (double)NAN;
    s->alone_s /= num;
    s->overlapped_s /= num;
    s->moving_s /= num;
    s->predicted_s /= num;
}

/* ---- all kernels ---- */

static long collect_kernels(const ms_recorder *recorder, const span_list *spans,
                            kernel *kernels)
{
    long num = 0, at = 0; /* kernels come in order of time */
    for (long i = 0; i < recorder->num; i++) {
        const ms_recorded *slice = &recorder->slices[i];
        if (!is_kernel(slice))
            continue;
        while (at < spans->num && spans->all[at].end_s <= slice->start_s)
            at++;
        kernels[num++] = (kernel){slice, moving_s(spans, slice, at), at};
    }
    if (num > 0)
        qsort(kernels, (size_t)num, sizeof *kernels, compare_kernels);
    return num;
}

static double overlapped_sum_s(const ms_kernel_slowdown *s)
{
    return s->num_compared > 0 ? s->overlapped_s * (double)s->num_compared : 0.0;
}

static int compare_slowdowns(const void *left, const void *right)
{
    const ms_kernel_slowdown *a = left, *b = right;
    double a_s = overlapped_sum_s(a), b_s = overlapped_sum_s(b);
    if (a_s < b_s || a_s > b_s)
        return a_s < b_s ? 1 : -1;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : a->task_kind - b->task_kind;
}

ms_kernel_slowdowns ms_kernel_slowdowns_make(ms_arena *arena, const ms_recorder *recorder,
                                             double interference_frac)
{
    ms_kernel_slowdowns out = {
        .kinds = MS_NEW_ARRAY(arena, recorder->num, ms_kernel_slowdown)};
    kernel *kernels = MS_NEW_ARRAY(arena, recorder->num, kernel);
    span_list spans = spans_of(arena, recorder);
    long num = collect_kernels(recorder, &spans, kernels);
    for (long first = 0, end; first < num; first = end) {
        const ms_recorded *slice = kernels[first].slice;
        bool same_kind = first > 0 && compare_kinds(kernels[first - 1].slice, slice) == 0;
        end = first + 1;
        while (end < num && compare_kernels(&kernels[first], &kernels[end]) == 0)
            end++;
        if (!same_kind)
            out.kinds[out.num++] =
                (ms_kernel_slowdown){.name = slice->name, .task_kind = slice->kind};
        add_equal(&out.kinds[out.num - 1], kernels + first, end - first, &spans,
                  interference_frac);
    }
    for (int i = 0; i < out.num; i++) {
        add_sums(&out.all, &out.kinds[i]);
        divide(&out.kinds[i]);
    }
    divide(&out.all);
    if (out.num > 0)
        qsort(out.kinds, (size_t)out.num, sizeof *out.kinds, compare_slowdowns);
    return out;
}
