/* Flat modes, outer to inner: the form in which layouts are computed with. */
#ifndef MS_TOPO_LAYOUT_PRIV_H
#define MS_TOPO_LAYOUT_PRIV_H

#include "topo/layout.h"

/* Appends mode `inner` or merges it with the last one; returns the number of modes. */
static inline int ms_modes_append(ms_mode *modes, int num_modes, ms_mode inner)
{
    if (inner.size == 1)
        return num_modes;
    if (num_modes > 0 && modes[num_modes - 1].stride == inner.size * inner.stride) {
        inner.size *= modes[num_modes - 1].size;
        num_modes--;
    }
    modes[num_modes] = inner;
    return num_modes + 1;
}

/* The value of flat modes at a linear index. */
static inline long ms_modes_at(const ms_mode *modes, int num_modes, long index)
{
    long value = 0;
    for (int i = num_modes - 1; i >= 0; i--) {
        value += index % modes[i].size * modes[i].stride;
        index /= modes[i].size;
    }
    return value;
}

/* All single modes of a layout, outer to inner, in an array of *num_modes. */
ms_mode *ms_layout_modes(ms_arena *arena, ms_layout layout, int *num_modes);
/* The layout of flat modes whose values fit a long; 1:0 for none. */
ms_layout ms_layout_of_modes(ms_arena *arena, ms_layout_order order, const ms_mode *modes,
                             int num_modes);
/* ms_layout_join for modes whose size and values are known to fit a long. */
ms_layout ms_layout_nest(ms_arena *arena, const ms_layout *modes, int num_modes);

#endif
