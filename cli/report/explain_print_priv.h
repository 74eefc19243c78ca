/* Printing of an explanation: shared by explain_print.c and explain_print_lists.c. */
#ifndef MS_CLI_REPORT_EXPLAIN_PRINT_PRIV_H
#define MS_CLI_REPORT_EXPLAIN_PRINT_PRIV_H

#include "cli/report/report.h"

void ms_print_paragraph(FILE *out, const char *text, int indent);

/* Prints the collectives that `view` selects, then the reason for each. */
void ms_print_collectives(FILE *out, ms_arena *arena, const ms_explanation *e,
                          const ms_explain_view *view);
/* Prints the tensors of block view->block (NULL: the most frequent kind of layer). */
void ms_print_tensors(FILE *out, ms_arena *arena, const ms_explanation *e,
                      const ms_explain_view *view);

#endif
