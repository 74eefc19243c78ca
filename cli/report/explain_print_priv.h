/* What the files that print explanations share. */
#ifndef MS_CLI_REPORT_EXPLAIN_PRINT_PRIV_H
#define MS_CLI_REPORT_EXPLAIN_PRINT_PRIV_H

#include "cli/report/report.h"

/* The same with the indent before the first line too. */
void ms_print_paragraph(FILE *out, const char *text, int indent);
/* A heading after an empty line. */
void ms_print_title(FILE *out, const char *title);

/* The collectives that the view shows, then why each is there. */
void ms_print_collectives(FILE *out, ms_arena *arena, const ms_explanation *e,
                          const ms_explain_view *view);
/* Tensors of the part that the view names, or of the main one. */
void ms_print_tensors(FILE *out, ms_arena *arena, const ms_explanation *e,
                      const ms_explain_view *view);

#endif
