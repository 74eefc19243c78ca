/* Opens plans and explains their predictions (sim/explain/explain.h), for tests of
 * explanations. */
#ifndef MS_TESTS_ORACLE_EXPLAINED_PLANS_H
#define MS_TESTS_ORACLE_EXPLAINED_PLANS_H

#include "sim/explain/explain.h"
#include "tests/test.h"

static inline ms_workload *workload_of(ms_ctx *cx, const ms_plan *plan)
{
    ms_workload *workload;
    ASSERT_OK(ms_workload_open(cx, plan, &workload), cx);
    ASSERT_OK(ms_plan_check(cx, plan, workload->model, MS_NOWHERE), cx);
    return workload;
}

static inline ms_explanation *explain(ms_ctx *cx, const ms_plan *plan, int rank)
{
    ms_explanation *explanation = MS_NEW(cx->arena, ms_explanation);
    ms_explain_options options = {.rank = rank};
    ms_workload *workload = workload_of(cx, plan);
    ASSERT_OK(ms_explain(cx, workload, plan, &options, explanation), cx);
    return explanation;
}

/* Closes the workload of an explanation, which points into it. */
static inline void close_explained(const ms_explanation *e)
{
    ms_workload_close(e->planned->workload);
}

#endif
