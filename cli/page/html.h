/* Folder cli/page: a plan's results as one HTML page without scripts, network or files
 * beside it.
 *
 * Here: HTML written with all arguments escaped, so that no name from a file can be
 * markup. Markup stands in formats alone. */
#ifndef MS_CLI_PAGE_HTML_H
#define MS_CLI_PAGE_HTML_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct ms_html {
    FILE *out;
    ms_arena *arena; /* rewound by each call */
} ms_html;

/* Writes a format with markup; what its arguments contribute is escaped: & < > " become
 * entities, control characters and invalid UTF-8 \xNN. */
void ms_html_print(const ms_html *html, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes the rest of a file, escaped. */
void ms_html_copy(const ms_html *html, FILE *from);

/* Writes a figure as text, with its exact value as JSON has it (null for NaN) in
 * data-value and its JSON key in data-key; "not known" for NaN. */
void ms_html_figure(const ms_html *html, const char *key, double value,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- tables ---- */

typedef struct ms_html_table {
    const ms_html *html;
    const char *alignment; /* 'l' or 'r' for each column */
    int column;
} ms_html_table;

/* Begins a table that scrolls sideways where the page is too narrow. `caption` is text,
 * `headings` a NULL-ended list, `id` unique in the page. */
ms_html_table ms_html_table_begin(const ms_html *html, const char *id,
                                  const char *caption, const char *alignment,
                                  const char *const *headings);
/* Writes the next cell of a table; the first of a row is its heading. */
void ms_html_cell(ms_html_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ms_html_table_end(const ms_html_table *table);

#define MS_HTML_TABLE(html, id, caption, alignment, ...)                                 \
    ms_html_table_begin((html), (id), (caption), (alignment),                            \
                        (const char *const[]){__VA_ARGS__, NULL})

#endif
