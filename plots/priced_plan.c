#include "plots/priced_plan.h"

#include "base/utf8.h"
#include "plots/caption.h"

#include <string.h>

static bool same_job(const ms_priced_plan *plans, int num)
{
    const ms_priced_plan *first = plans;
    for (int i = 1; i < num; i++) {
        const ms_priced_plan *plan = &plans[i];
        if (strcmp(plan->workload->model->name, first->workload->model->name) != 0 ||
            strcmp(plan->workload->cluster->device.name,
                   first->workload->cluster->device.name) != 0 ||
            plan->plan->gpus != first->plan->gpus)
            return false;
    }
    return true;
}

const char *ms_priced_plans_title(ms_arena *arena, const char *what,
                                  const ms_priced_plan *plans, int num)
{
    const char *job = ms_caption_job(arena, plans->plan, plans->workload);
    if (num == 1)
        return ms_arena_printf(arena, "%s: %s", what, job);
    if (same_job(plans, num))
        return ms_arena_printf(arena, "%s of %d plans: %s", what, num, job);
    return ms_arena_printf(arena, "%s of %d plans", what, num);
}

const char *ms_priced_plan_label(ms_arena *arena, const ms_priced_plan *plan, size_t most)
{
    const char *name = "";
    if (plan->name != NULL)
        name = ms_arena_printf(arena, "%.*s%s\n", ms_utf8_prefix(plan->name, (int)most),
                               plan->name, strlen(plan->name) > most ? "…" : "");
    return ms_arena_printf(
        arena, "%s%s\n%s", name,
        ms_caption_wrap(arena, ms_caption_axes(arena, plan->plan), most),
        ms_caption_wrap(arena, ms_caption_choices(arena, plan->plan), most));
}

const char *ms_priced_plan_name(ms_arena *arena, const ms_priced_plan *plan)
{
    return plan->name != NULL ? plan->name : ms_caption_axes(arena, plan->plan);
}
