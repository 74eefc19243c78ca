#include "sim/request/search_why.h"

#include "sim/request/plan_order.h"

ms_status ms_search_why_read(ms_ctx *cx, const char *text, const ms_plan *base,
                             const ms_stack *stack, ms_why_question *out)
{
    const char *order;
    MS_TRY(ms_why_question_read(cx, text, base, stack, &order, out));
    return order == NULL ? MS_OK : ms_order_fix(cx, "order", order, &out->asked);
}
