/* For tests: plans opened with their priced layer programs. */
#ifndef MS_TESTS_UNIT_PLANNED_CASE_H
#define MS_TESTS_UNIT_PLANNED_CASE_H

#include "sim/step/bill_key.h"
#include "sim/step/planned.h"

#include "tests/test.h"

/* A plan of one sequence of 4096 tokens on tp GPUs of a node, without sharded
 * parameters. */
static inline ms_plan sequence_plan(const char *model, long tp, const char *stack,
                                    ms_dtype compute)
{
    ms_plan plan = ms_plan_default(tp);
    plan.model = model;
    plan.cluster = "hgx-h100";
    plan.stack = stack;
    plan.size[MS_TP] = tp;
    plan.size[MS_DP_SHARD] = 1;
    plan.sequence_length = 4096;
    plan.global_batch = 1;
    plan.zero = 0;
    plan.sequence_parallel = tp > 1;
    plan.compute = compute;
    return plan;
}

/* Opens the plan with its workload. `plan` must stay while the result is used; the
 * caller closes the workload. */
static inline ms_planned *open_planned(ms_ctx *cx, ms_plan *plan)
{
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ms_planned *planned = MS_NEW(cx->arena, ms_planned);
    ms_planned_open(cx, workload, plan, planned);
    return planned;
}

/* The priced program of the first kind of layers, without recomputation. */
static inline ms_bill layer_of(const ms_plan *plan)
{
    ms_ctx *cx = test_cx();
    ms_workload *workload = NULL;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ms_bill_key key = ms_plan_bill_key(workload, plan);
    ms_bill bill = ms_bill_copy(
        cx->arena, ms_workload_bills(workload, &key)->layer[0][MS_RECOMPUTE_NONE]);
    ms_workload_close(workload);
    return bill;
}

#endif
