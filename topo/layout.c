/* Layouts as trees of modes: construction and evaluation. */
#include "topo/layout.h"

#include "topo/layout_priv.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

ms_layout ms_layout_make(ms_layout_order order, long size, long stride)
{
    assert(size >= 1 && stride >= 0);
    assert(stride == 0 || size <= LONG_MAX / stride);
    return (ms_layout){.order = order, .size = size, .stride = stride};
}

ms_layout ms_layout_nest(ms_arena *arena, const ms_layout *modes, int num_modes)
{
    assert(num_modes >= 1);
    ms_layout *copies = MS_NEW_ARRAY(arena, num_modes, ms_layout);
    long size = 1;
    for (int i = 0; i < num_modes; i++) {
        assert(modes[i].order == modes[0].order);
        copies[i] = modes[i];
        size *= modes[i].size;
    }
    return (ms_layout){
        .order = modes[0].order, .num_modes = num_modes, .size = size, .modes = copies};
}

ms_status ms_layout_join(ms_ctx *cx, const ms_layout *modes, int num_modes,
                         ms_layout *out)
{
    long size = 1, largest = 0;
    for (int i = 0; i < num_modes; i++) {
        if (__builtin_mul_overflow(size, modes[i].size, &size))
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                           "a layout of more than %ld elements", LONG_MAX);
        if (__builtin_add_overflow(largest, ms_layout_cosize(modes[i]) - 1, &largest) ||
            largest == LONG_MAX)
            return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "a layout that reaches beyond %ld",
                           LONG_MAX);
    }
    *out = ms_layout_nest(cx->arena, modes, num_modes);
    return MS_OK;
}

/* ---- modes, outer to inner ---- */

/* The i-th top-level mode, counted from the slowest. */
static ms_layout outer_mode(ms_layout layout, int i)
{
    return layout.modes[layout.order == MS_LEXICOGRAPHIC ? i : layout.num_modes - 1 - i];
}

static int count_modes(ms_layout layout)
{
    int count = layout.num_modes == 0;
    for (int i = 0; i < layout.num_modes; i++)
        count += count_modes(layout.modes[i]);
    return count;
}

/* Writes the single modes of a layout, outer to inner; returns the new end. */
static ms_mode *write_modes(ms_layout layout, ms_mode *end)
{
    if (layout.num_modes == 0)
        *end++ = (ms_mode){layout.size, layout.stride};
    for (int i = 0; i < layout.num_modes; i++)
        end = write_modes(outer_mode(layout, i), end);
    return end;
}

ms_mode *ms_layout_modes(ms_arena *arena, ms_layout layout, int *num_modes)
{
    *num_modes = count_modes(layout);
    ms_mode *modes = MS_NEW_ARRAY(arena, *num_modes, ms_mode);
    write_modes(layout, modes);
    return modes;
}

ms_layout ms_layout_of_modes(ms_arena *arena, ms_layout_order order, const ms_mode *modes,
                             int num_modes)
{
    if (num_modes == 0)
        return ms_layout_make(order, 1, 0);
    ms_layout *parts = MS_NEW_ARRAY(arena, num_modes, ms_layout);
    for (int i = 0; i < num_modes; i++) {
        int place = order == MS_LEXICOGRAPHIC ? i : num_modes - 1 - i;
        parts[place] = ms_layout_make(order, modes[i].size, modes[i].stride);
    }
    return num_modes == 1 ? parts[0] : ms_layout_nest(arena, parts, num_modes);
}

/* ---- the function ---- */

int ms_layout_rank(ms_layout layout)
{
    return layout.num_modes == 0 ? 1 : layout.num_modes;
}

ms_layout ms_layout_mode(ms_layout layout, int i)
{
    assert(i >= 0 && i < ms_layout_rank(layout));
    return layout.num_modes == 0 ? layout : layout.modes[i];
}

int ms_layout_depth(ms_layout layout)
{
    int depth = 0;
    for (int i = 0; i < layout.num_modes; i++) {
        int below = 1 + ms_layout_depth(layout.modes[i]);
        depth = below > depth ? below : depth;
    }
    return depth;
}

long ms_layout_cosize(ms_layout layout)
{
    return 1 + ms_layout_at(layout, layout.size - 1);
}

long ms_layout_at(ms_layout layout, long index)
{
    assert(index >= 0 && index < layout.size);
    long value = index * layout.stride;
    for (int i = layout.num_modes - 1; i >= 0; i--) {
        ms_layout mode = outer_mode(layout, i);
        value += ms_layout_at(mode, index % mode.size);
        index /= mode.size;
    }
    return value;
}

long *ms_layout_values(ms_arena *arena, ms_layout layout)
{
    long *values = MS_NEW_ARRAY(arena, layout.size, long);
    for (long i = 0; i < layout.size; i++)
        values[i] = ms_layout_at(layout, i);
    return values;
}

/* ---- overlap ---- */

static int by_stride(const void *a, const void *b)
{
    long x = ((const ms_mode *)a)->stride, y = ((const ms_mode *)b)->stride;
    return (x > y) - (x < y);
}

/* Whether each stride exceeds the sum of all that modes of smaller stride can add, as for
 * digits of a number. If so no value repeats; if not, values may still be distinct. */
static bool modes_cannot_overlap(ms_arena *arena, ms_layout layout)
{
    int num_modes;
    ms_mode *modes = ms_layout_modes(arena, layout, &num_modes);
    qsort(modes, (size_t)num_modes, sizeof *modes, by_stride);
    long reach = 0;
    for (int i = 0; i < num_modes; i++) {
        if (modes[i].size > 1 && modes[i].stride <= reach)
            return false;
        reach += (modes[i].size - 1) * modes[i].stride;
    }
    return true;
}

/* Layouts with values beyond this limit are not searched for repeated values. */
#define MAX_COMPARED_VALUES (1L << 22)

/* The first value that occurs a second time; -1 if none does. */
static long repeated_value(ms_arena *arena, ms_layout layout)
{
    bool *seen = MS_NEW_ARRAY(arena, ms_layout_cosize(layout), bool);
    for (long i = 0; i < layout.size; i++) {
        long value = ms_layout_at(layout, i);
        if (seen[value])
            return value;
        seen[value] = true;
    }
    return -1;
}

ms_status ms_layout_check_injective(ms_ctx *cx, ms_layout layout)
{
    ms_arena_mark mark = ms_arena_save(cx->arena);
    bool distinct = modes_cannot_overlap(cx->arena, layout);
    bool large = ms_layout_cosize(layout) > MAX_COMPARED_VALUES;
    long repeated = distinct || large ? -1 : repeated_value(cx->arena, layout);
    ms_arena_rewind(cx->arena, mark);
    if (distinct || (!large && repeated < 0))
        return MS_OK;
    const char *text = ms_layout_text(cx->arena, layout);
    if (large) {
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "modes of layout %s interlock and reach beyond %ld: too many "
                       "values to compare",
                       text, MAX_COMPARED_VALUES);
    }
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "layout %s overlaps: it gives %ld twice", text,
            repeated);
    return ms_hint(
        cx, "let each stride exceed what the modes of smaller stride reach together");
}
