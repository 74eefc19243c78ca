/* Sections of a page and what they share. */
#ifndef MS_CLI_PAGE_PAGE_PRIV_H
#define MS_CLI_PAGE_PAGE_PRIV_H

#include "cli/page/html.h"
#include "cli/page/page.h"

/* Lines of the style sheet, NULL-ended. */
extern const char *const ms_page_style[];

void ms_page_answer(const ms_html *html, const ms_page *page);
void ms_page_risk(const ms_html *html, const ms_page *page);
void ms_page_campaign(const ms_html *html, const ms_page *page);
void ms_page_mesh(const ms_html *html, const ms_page *page);
void ms_page_memory(const ms_html *html, const ms_page *page);
void ms_page_step(const ms_html *html, const ms_page *page);
void ms_page_timeline(const ms_html *html, const ms_page *page);
void ms_page_of_sweep(const ms_html *html, const ms_page *page);
void ms_page_alternatives(const ms_html *html, const ms_page *page);
void ms_page_changes(const ms_html *html, const ms_page *page);
void ms_page_coefficients(const ms_html *html, const ms_page *page);
void ms_page_repeat(const ms_html *html, const ms_page *page);

/* A coloured mark of a legend with its name. */
void ms_page_legend(const ms_html *html, const char *style, const char *name);

#endif
