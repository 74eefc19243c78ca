/* Executes planned redistributions of a tensor: every rank computes its new part from
 * what the ranks of its group hold. */
#ifndef MS_TESTS_SUPPORT_RUN_REDISTRIBUTION_H
#define MS_TESTS_SUPPORT_RUN_REDISTRIBUTION_H

#include "costmodel/reshard/redistribute.h"
#include "tests/support/sharded_tensor.h"

/* Executes all steps of a plan; returns the redistributed tensor. Fails if no rank of a
 * group has a needed element, or a rank sends more than the step's price assumes. */
ms_sharded_tensor ms_run_redistribution(ms_arena *arena, ms_sharded_tensor held,
                                        const ms_redistribution *plan);

#endif
