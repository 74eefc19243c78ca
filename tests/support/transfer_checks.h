/* Every kind of transfer over every group of a plan, checked on each rank against what
 * must arrive. For any backend with values. */
#ifndef MS_TESTS_SUPPORT_TRANSFER_CHECKS_H
#define MS_TESTS_SUPPORT_TRANSFER_CHECKS_H

#include "exec/core/backend.h"

/* The `main` of a rank; `state` is its ms_backend_job. MS_ECHECK: something else arrived;
 * says what. */
ms_rank_main ms_check_transfers;

/* pp x dp_replicate x dp_shard x cp x tp, with ep over the innermost ranks. */
ms_plan ms_check_plan(const long size[MS_NUM_PLAN_AXES], long ep);

#endif
