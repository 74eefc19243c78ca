#include "cli/cmd/search_why.h"
#include "cli/report/report.h"

#include "base/print.h"
#include "cli/options/plan_command.h"
#include "cli/options/plan_order.h"

ms_status ms_search_why_read(ms_ctx *cx, const char *text, const ms_plan *base,
                             const ms_stack *stack, ms_why_question *out)
{
    const char *order;
    MS_TRY(ms_why_question_read(cx, text, base, stack, &order, out));
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
