/* Functions for explanations of plans that the explain_*.c files share. */
#ifndef MS_SIM_EXPLAIN_EXPLAIN_PRIV_H
#define MS_SIM_EXPLAIN_EXPLAIN_PRIV_H

#include "sim/explain/explain.h"

ms_status ms_explain_list_figures(ms_ctx *cx, ms_explanation *e);
void ms_explain_answer_all(ms_ctx *cx, ms_explanation *e);

#endif
