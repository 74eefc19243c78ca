#include "tests/support/layouts.h"

#include "topo/layout_priv.h"

ms_layout test_layout_reverse(ms_arena *arena, ms_layout layout)
{
    bool lexicographic = layout.order == MS_LEXICOGRAPHIC;
    layout.order = lexicographic ? MS_COLEXICOGRAPHIC : MS_LEXICOGRAPHIC;
    if (layout.num_modes == 0)
        return layout;
    ms_layout *modes = MS_NEW_ARRAY(arena, layout.num_modes, ms_layout);
    for (int i = 0; i < layout.num_modes; i++)
        modes[layout.num_modes - 1 - i] = test_layout_reverse(arena, layout.modes[i]);
    return ms_layout_nest(arena, modes, layout.num_modes);
}

long test_layout_at(ms_layout layout, const long *coordinate)
{
    long value = 0;
    for (int i = 0; i < ms_layout_rank(layout); i++)
        value += ms_layout_at(ms_layout_mode(layout, i), coordinate[i]);
    return value;
}
