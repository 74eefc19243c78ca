/* Layout algebra on flat modes, outer to inner, so that one code serves both orders.
 * Source: NVIDIA/cutlass media/docs/02_layout_algebra.md. */
#include "topo/layout_priv.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

/* ---- coalesce ---- */

/* Merges layout modes that continue each other, in place; returns how many remain. */
static int merge_modes(ms_mode *modes, int num_modes)
{
    int num_merged = 0;
    for (int i = 0; i < num_modes; i++)
        num_merged = ms_modes_append(modes, num_merged, modes[i]);
    return num_merged;
}

static ms_mode *coalesced_modes(ms_arena *arena, ms_layout layout, int *num_modes)
{
    ms_mode *modes = ms_layout_modes(arena, layout, num_modes);
    *num_modes = merge_modes(modes, *num_modes);
    return modes;
}

ms_layout ms_layout_coalesce(ms_arena *arena, ms_layout layout)
{
    int num_modes;
    ms_mode *modes = coalesced_modes(arena, layout, &num_modes);
    return ms_layout_of_modes(arena, layout.order, modes, num_modes);
}

/* ---- composition ---- */

/* State while a o b is computed: `modes` are a's coalesced modes, digits of its index. */
typedef struct digits {
    ms_ctx *cx;
    ms_layout a, b; /* operands of the composition, for messages */
    ms_mode mode;   /* mode of layout b that is being composed with a */
    ms_mode *modes;
    int num_modes;
    /* [mode of a] largest value that the digit reaches by b's modes up to `mode`. While
     * every value is below the digit's size, no sum carries: a(b(i)) is the sum of a(b's
     * modes). */
    long *largest_digit;
} digits;

static ms_status refuse_composition(const digits *d, const char *why)
{
    return ms_fail(
        d->cx, MS_EINPUT, MS_NOWHERE,
        "layout %s composed with %s is not defined: mode %ld:%ld of the second %s",
        ms_layout_text(d->cx->arena, d->a), ms_layout_text(d->cx->arena, d->b),
        d->mode.size, d->mode.stride, why);
}

/* Takes from b's mode `rest` what falls into digit `place` of a's index: at most
 * rest->size elements, rest->stride apart, as `taken`; `rest` becomes the remainder. */
static ms_status take_digit(digits *d, int place, ms_mode *rest, ms_mode *taken)
{
    ms_mode mode = d->modes[place];
    long room = (mode.size - 1) / rest->stride + 1;
    bool over = rest->size > room;
    if (over && place == 0)
        return refuse_composition(d, "reaches beyond the first");
    if (over && (mode.size % rest->stride != 0 || rest->size % room != 0))
        return refuse_composition(d, "steps unevenly through the first");
    taken->size = over ? room : rest->size;
    taken->stride = mode.stride * rest->stride;
    long digit = (taken->size - 1) * rest->stride, extent;
    if (digit > mode.size - 1 - d->largest_digit[place])
        return refuse_composition(
            d, place == 0 ? "reaches beyond the first"
                          : "carries from one mode of the first to the next");
    if (__builtin_mul_overflow(taken->size, taken->stride, &extent))
        return refuse_composition(d, "has values out of range");
    d->largest_digit[place] += digit;
    *rest = (ms_mode){rest->size / taken->size, 1};
    return MS_OK;
}

static ms_status compose_mode(digits *d, ms_mode b, ms_layout *out)
{
    ms_layout_order order = d->a.order;
    if (b.stride == 0) {
        *out = ms_layout_make(order, b.size, 0);
        return MS_OK;
    }
    ms_mode *taken = MS_NEW_ARRAY(d->cx->arena, d->num_modes, ms_mode);
    ms_mode rest = d->mode = b;
    /* modes are found fastest first: fill from the end */
    int first = d->num_modes;
    for (int i = d->num_modes - 1; i >= 0 && rest.size > 1; i--) {
        if (rest.stride % d->modes[i].size == 0)
            rest.stride /= d->modes[i].size;
        else
            MS_TRY(take_digit(d, i, &rest, &taken[--first]));
    }
    if (rest.size > 1)
        return refuse_composition(d, "reaches beyond the first");
    *out = ms_layout_of_modes(d->cx->arena, order, &taken[first], d->num_modes - first);
    return MS_OK;
}

static ms_status compose_tree(digits *d, ms_layout b, ms_layout *out)
{
    if (b.num_modes == 0)
        return compose_mode(d, (ms_mode){b.size, b.stride}, out);
    ms_layout *modes = MS_NEW_ARRAY(d->cx->arena, b.num_modes, ms_layout);
    for (int i = 0; i < b.num_modes; i++)
        MS_TRY(compose_tree(d, b.modes[i], &modes[i]));
    return ms_layout_join(d->cx, modes, b.num_modes, out);
}

ms_status ms_layout_compose(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out)
{
    assert(a.order == b.order);
    digits d = {.cx = cx, .a = a, .b = b};
    d.modes = coalesced_modes(cx->arena, a, &d.num_modes);
    d.largest_digit = MS_NEW_ARRAY(cx->arena, d.num_modes, long);
    return compose_tree(&d, b, out);
}

/* ---- complement, division and product ---- */

static int outer_first(const void *a, const void *b)
{
    long x = ((const ms_mode *)a)->stride, y = ((const ms_mode *)b)->stride;
    return (x < y) - (x > y);
}

ms_status ms_layout_complement(ms_ctx *cx, ms_layout a, long limit, ms_layout *out)
{
    assert(limit >= 1);
    int num_modes;
    ms_mode *modes = coalesced_modes(cx->arena, a, &num_modes);
    qsort(modes, (size_t)num_modes, sizeof *modes, outer_first);
    ms_mode *gaps = MS_NEW_ARRAY(cx->arena, num_modes + 1, ms_mode);
    /* end of what finer modes reach: copies so far apart are disjoint */
    long end = 1;
    for (int i = num_modes - 1; i >= 0; i--) {
        if (modes[i].stride < end || modes[i].stride % end != 0) {
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                           "layout %s has no complement: stride %ld is no multiple of "
                           "%ld, where its finer modes end",
                           ms_layout_text(cx->arena, a), modes[i].stride, end);
        }
        gaps[i + 1] = (ms_mode){modes[i].stride / end, end};
        end = modes[i].size * modes[i].stride;
    }
    long copies = (limit - 1) / end + 1;
    if (copies > LONG_MAX / end)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "the complement of layout %s reaches beyond %ld",
                       ms_layout_text(cx->arena, a), LONG_MAX);
    gaps[0] = (ms_mode){copies, end};
    *out = ms_layout_of_modes(cx->arena, a.order, gaps, merge_modes(gaps, num_modes + 1));
    return MS_OK;
}

static ms_status join_pair(ms_ctx *cx, ms_layout inner, ms_layout outer, ms_layout *out)
{
    bool lexicographic = inner.order == MS_LEXICOGRAPHIC;
    ms_layout pair[] = {lexicographic ? outer : inner, lexicographic ? inner : outer};
    return ms_layout_join(cx, pair, 2, out);
}

ms_status ms_layout_divide(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out)
{
    ms_layout rest = {0}, tiles;
    MS_TRY(ms_layout_complement(cx, b, a.size, &rest));
    MS_TRY(join_pair(cx, b, rest, &tiles));
    if (tiles.size != a.size) {
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "tiles %s do not fill layout %s: %ld elements are no multiple",
                       ms_layout_text(cx->arena, b), ms_layout_text(cx->arena, a),
                       a.size);
    }
    return ms_layout_compose(cx, a, tiles, out);
}

ms_status ms_layout_product(ms_ctx *cx, ms_layout a, ms_layout b, ms_layout *out)
{
    long limit;
    if (__builtin_mul_overflow(a.size, ms_layout_cosize(b), &limit)) {
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "the product of layouts %s and %s reaches beyond %ld",
                       ms_layout_text(cx->arena, a), ms_layout_text(cx->arena, b),
                       LONG_MAX);
    }
    ms_layout rest = {0}, copies;
    MS_TRY(ms_layout_complement(cx, a, limit, &rest));
    MS_TRY(ms_layout_compose(cx, rest, b, &copies));
    return join_pair(cx, a, copies, out);
}

/* ---- right inverse ---- */

/* Finds the mode with `stride`; *found: its size, and its step in the linear index. */
static bool find_stride(const ms_mode *modes, int num_modes, long stride, ms_mode *found)
{
    long step = 1;
    for (int i = num_modes - 1; i >= 0; i--) {
        if (modes[i].stride == stride) {
            *found = (ms_mode){modes[i].size, step};
            return true;
        }
        step *= modes[i].size;
    }
    return false;
}

ms_layout ms_layout_right_inverse(ms_arena *arena, ms_layout a)
{
    int num_modes;
    ms_mode *modes = coalesced_modes(arena, a, &num_modes);
    ms_mode *inverse = MS_NEW_ARRAY(arena, num_modes, ms_mode);
    /* fastest modes are found first: fill from the end */
    int first = num_modes;
    long reached = 1;
    while (first > 0 && find_stride(modes, num_modes, reached, &inverse[first - 1])) {
        reached *= inverse[first - 1].size;
        first--;
    }
    int num_inverse = merge_modes(&inverse[first], num_modes - first);
    return ms_layout_of_modes(arena, a.order, &inverse[first], num_inverse);
}
