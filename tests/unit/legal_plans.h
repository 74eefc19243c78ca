/* A legal plan of a dense model and one of a model with experts, for tests to change. */
#ifndef MS_TESTS_UNIT_LEGAL_PLANS_H
#define MS_TESTS_UNIT_LEGAL_PLANS_H

#include "costmodel/plan/plan.h"

static inline ms_plan dense_plan(void)
{
    ms_plan plan = ms_plan_default(512);
    plan.model = "llama-3.1-70b";
    plan.size[MS_PP] = 4;
    plan.size[MS_TP] = 8;
    ms_plan_fill_defaults(&plan);
    return plan;
}

static inline ms_plan expert_plan(void)
{
    ms_plan plan = ms_plan_default(2048);
    plan.model = "deepseek-v3";
    plan.size[MS_PP] = 16;
    plan.ep = 64;
    ms_plan_fill_defaults(&plan);
    return plan;
}

#endif
