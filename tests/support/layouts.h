/* Layouts as tests compare them: in both orders, and at coordinates. */
#ifndef MS_TESTS_SUPPORT_LAYOUTS_H
#define MS_TESTS_SUPPORT_LAYOUTS_H

#include "topo/layout.h"

/* The same function in the other order: modes are reversed at every level. */
ms_layout test_layout_reverse(ms_arena *arena, ms_layout layout);
/* The value at a coordinate: a linear index into each top-level mode. */
long test_layout_at(ms_layout layout, const long *coordinate);

#endif
