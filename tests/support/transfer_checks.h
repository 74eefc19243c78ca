/* Runs every kind of transfer over every group of a plan, and checks what arrives at each
 * rank; for any backend with values. */
#ifndef MS_TESTS_SUPPORT_TRANSFER_CHECKS_H
#define MS_TESTS_SUPPORT_TRANSFER_CHECKS_H

#include "exec/core/backend.h"

/* Main function of a rank; `state` is its ms_backend_job. MS_ECHECK, with a message:
 * wrong values arrived. */
ms_rank_main ms_check_transfers;

/* Makes a plan of sizes pp, dp_replicate, dp_shard, cp, tp, with ep over the innermost
 * ranks. */
ms_plan ms_check_plan(const long size[MS_NUM_PLAN_AXES], long ep);

#endif
