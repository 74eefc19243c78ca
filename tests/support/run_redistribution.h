/* Planned redistributions executed: every rank computes its new part from what the ranks
 * of its group hold. */
#ifndef MS_TESTS_SUPPORT_RUN_REDISTRIBUTION_H
#define MS_TESTS_SUPPORT_RUN_REDISTRIBUTION_H

#include "costmodel/reshard/redistribute.h"
#include "tests/support/sharded_tensor.h"

/* All steps of a plan. Fails when a step needs an element that nobody in the group has,
 * or sends more than its price assumes. */
ms_sharded_tensor ms_run_redistribution(ms_arena *arena, ms_sharded_tensor held,
                                        const ms_redistribution *plan);

#endif
