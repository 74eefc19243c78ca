#include "cli/cmd/search_why.h"
#include "cli/report/report.h"

#include "base/print.h"
#include "cli/options/plan_command.h"
#include "cli/options/plan_order.h"

ms_status ms_search_check_recompute(ms_ctx *cx, const ms_space *space)
{
    if (space->low[MS_CHOOSE_RECOMPUTE] < MS_RECOMPUTE_AUTO)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "search does not take recompute %s",
            ms_recompute_names[MS_RECOMPUTE_AUTO]);
    return ms_hint(cx, "\"meshsim predict\" takes it");
}

ms_status ms_search_why_read(ms_ctx *cx, const char *text, const ms_plan *base,
                             const ms_stack *stack, ms_why_question *out)
{
    const char *order;
    MS_TRY(ms_why_question_read(cx, text, base, stack, &order, out));
    MS_TRY(ms_search_check_recompute(cx, &out->asked));
    return order == NULL ? MS_OK : ms_order_fix(cx, "order", order, &out->asked);
}

void ms_search_why_print(FILE *out, ms_arena *arena, const ms_why *why)
{
    fputc('\n', out);
    ms_why_print(out, arena, why);
    if (why->has_plan)
        ms_print(out, "  in full    meshsim predict %s\n",
                 ms_plan_command_text(arena, &why->plan));
}
