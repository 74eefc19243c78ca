/* Functions for explanations of plans that the explain_*.c files share. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_PRIV_H
#define MS_SIM_EXPLAIN_EXPLAIN_PRIV_H

#include "sim/explain/explain.h"

ms_status ms_explain_list_figures(ms_ctx *cx, ms_explanation *e);
void ms_explain_answer_all(ms_ctx *cx, ms_explanation *e);
/* Step time of a plan, in seconds, if a number of an explanation had another value; NaN if
 * the value is not allowed, or is the number's own. */
double ms_explain_step_with(const ms_workload *workload, const ms_plan *plan,
                            const ms_explain_figure *figure, double value);
/* Unit of a number in JSON: "B", "B/s", "s", "FLOP/s" or "". */
const char *ms_explain_unit(const ms_explain_figure *figure);

#endif
