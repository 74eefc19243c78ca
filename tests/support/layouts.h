/* Layouts (topo/layout.h) for tests: in the reversed order, and evaluated at
 * coordinates. */
#ifndef MS_TESTS_SUPPORT_LAYOUTS_H
#define MS_TESTS_SUPPORT_LAYOUTS_H

#include "topo/layout.h"

/* Returns an equal layout function with modes reversed at every level, and the opposite
 * order. */
ms_layout test_layout_reverse(ms_arena *arena, ms_layout layout);
/* Value of a layout at a coordinate, which has a linear index into each top-level
 * mode. */
long test_layout_at(ms_layout layout, const long *coordinate);

#endif
