/* Sections of a page: other plans and why they lost, and what would change the choice. */
#include "cli/page/page_priv.h"

#include "cli/report/report.h"
#include "sim/explain/plan_edit.h"
#include "sim/step/prediction_text.h"

#include <math.h>

#define MAX_CHANGES 10
#define MAX_FIGURES 15

/* ---- alternatives ---- */

/* The part of the step on which a slower plan spends most of its additional time. */
static const char *reason_text(ms_arena *arena, const ms_page_search *s,
                               const ms_result *chosen, int i)
{
    static const char *const names[MS_NUM_RESULT_TIMES] = {
        "compute", "exposed communication", "pipeline bubble", "optimizer", "host"};
    const ms_result *other = &s->plans.items[i];
    if (other == chosen)
        return "reported here";
    if (other->step_s < chosen->step_s)
        return chosen->step_s < other->step_s * (1.0 + s->band_frac)
                   ? "faster, but not by more than the tie band, and less simple"
                   : "faster, but not what the search was to find";
    int most = 0;
    double by_s = 0.0;
    for (int part = 0; part < MS_NUM_RESULT_TIMES; part++) {
        double more_s = other->times_s[part] - chosen->times_s[part];
        if (more_s > by_s) {
            by_s = more_s;
            most = part;
        }
    }
    if (by_s == 0.0)
        return "no faster";
    return ms_arena_printf(arena, "mostly %s: %+.3g s", names[most], by_s);
}

static void probability_cell(ms_html_table *table, double probability)
{
    if (isnan(probability))
        ms_html_cell(table, "not known");
    else
        ms_html_cell(table, "%.2f", probability);
}

static void percent_cell(ms_html_table *table, double frac)
{
    if (isnan(frac))
        ms_html_cell(table, "not known");
    else
        ms_html_cell(table, "%+.1f", 100.0 * frac);
}

static void write_listed(const ms_html *html, const ms_page *page)
{
    const ms_page_search *s = page->search;
    ms_arena *arena = page->arena;
    const ms_result *chosen = &s->plans.items[0];
    ms_html_table table = MS_HTML_TABLE(
        html, "t-listed",
        ms_arena_printf(arena, "The %d plans that the search lists", s->plans.num),
        "rrrrrrll", "#", "step (s)", "against this plan (%)", "above the optimum (%)",
        "peak (GiB)", "P(fit)", "what differs", "why it lost");
    for (int i = 0; i < s->plans.num; i++) {
        const ms_result *r = &s->plans.items[i];
        ms_html_cell(&table, "%d", i + 1);
        ms_html_cell(&table, "%s", ms_amount_text(arena, r->step_s));
        percent_cell(&table, r->step_s / chosen->step_s - 1.0);
        percent_cell(&table, s->gap_frac[i]);
        ms_html_cell(&table, "%.1f", ms_gib(r->peak_bytes));
        probability_cell(&table, r->fits_probability);
        ms_html_cell(&table, "%s",
                     i == 0 || r->made_for == NULL || chosen->made_for == NULL
                         ? "-"
                         : ms_plan_edit_text(arena, chosen->made_for, r->made_for));
        ms_html_cell(&table, "%s", reason_text(arena, s, chosen, i));
    }
    ms_html_table_end(&table);
    if (isfinite(s->num_meshes)) {
        ms_html_print(
            html,
            "<p>Of %.0f meshes with %.0f configurations these are the best, one "
            "a mesh.</p>\n",
            s->num_meshes, s->num_configurations);
    }
}

static void advised_row(ms_html_table *table, ms_arena *arena, const ms_advised *given,
                        const ms_advised *change)
{
    double gap_frac = change->step_s / given->step_s - 1.0;
    ms_html_cell(table, "%s", change == given ? "this plan" : change->change);
    ms_html_cell(table, "%s", ms_amount_text(arena, change->step_s));
    ms_html_cell(table, "%+.1f", 100.0 * gap_frac);
    ms_html_cell(table, "%.1f", ms_gib(change->peak_bytes));
    probability_cell(table, change->fits_probability);
    ms_html_cell(table, "%s",
                 change == given   ? "reported here"
                 : !change->fits   ? "does not fit"
                 : gap_frac < 0.0  ? "faster: worth a look"
                 : gap_frac == 0.0 ? "no faster"
                                   : "slower");
}

static void write_advised(const ms_html *html, const ms_page *page)
{
    const ms_advice *advice = page->advice;
    ms_html_table table = MS_HTML_TABLE(
        html, "t-changes", "This plan with one choice changed, fastest first", "lrrrrl",
        "change", "step (s)", "against this plan (%)", "peak (GiB)", "P(fit)", "outcome");
    int num = 0, unfit = 0;
    advised_row(&table, page->arena, &advice->given, &advice->given);
    for (int i = 0; i < advice->num_fitting && num < MAX_CHANGES; i++) {
        if (!ms_advice_is_repeated(advice, i)) {
            advised_row(&table, page->arena, &advice->given, &advice->changes[i]);
            num++;
        }
    }
    for (int i = advice->num_fitting; i < advice->num && unfit < 3; i++, unfit++)
        advised_row(&table, page->arena, &advice->given, &advice->changes[i]);
    ms_html_table_end(&table);
    ms_html_print(html,
                  "<p>%d single changes fit with probability %g, %d do not; a few are "
                  "shown. Best pair of changes: %s.</p>\n",
                  advice->num_fitting, advice->limit.rule.min_probability,
                  advice->num - advice->num_fitting,
                  ms_advice_pair_text(page->arena, advice));
}

void ms_page_alternatives(const ms_html *html, const ms_page *page)
{
    if (page->search != NULL)
        write_listed(html, page);
    write_advised(html, page);
}

/* ---- sensitivity ---- */

static void effect_cell(ms_html_table *table, double effect)
{
    if (isnan(effect))
        ms_html_cell(table, "-");
    else if (fabs(effect) < 5e-5)
        ms_html_cell(table, "0");
    else
        ms_html_cell(table, "%+.4f", effect);
}

static void figure_row(ms_html_table *table, const ms_explain_figure *f)
{
    char value[64];
    ms_html_cell(table, "%s", f->key);
    ms_html_cell(table, "%s", f->file);
    ms_html_cell(table, "%s", f->help);
    ms_html_cell(table, "%s", ms_format_quantity(value, sizeof value, f->value, f->unit));
    ms_html_cell(table, "%s", ms_provenance_names[f->from]);
    effect_cell(table, f->step_effect);
    effect_cell(table, f->memory_effect);
}

void ms_page_changes(const ms_html *html, const ms_page *page)
{
    const ms_explanation *e = page->explanation;
    int shown = e->num_figures < MAX_FIGURES ? e->num_figures : MAX_FIGURES;
    ms_html_print(html, "<h3>What to measure</h3>\n<p>%s</p>\n",
                  ms_advice_measure_text(page->arena, page->advice));
    fputs("<h3>Sensitivity</h3>\n", html->out);
    ms_html_table table = MS_HTML_TABLE(
        html, "t-sensitivity", "Coefficients with the greatest effect on the step time",
        "lllrlrr", "coefficient", "file", "meaning", "value", "from", "step (%/%)",
        "memory (%/%)");
    for (int i = 0; i < shown; i++)
        figure_row(&table, &e->figures[i]);
    ms_html_table_end(&table);
    fputs("<p>%/%: by how many percent step time or peak memory changes when the "
          "coefficient grows by 1 %.</p>\n<h3>Questions</h3>\n<dl>\n",
          html->out);
    for (int i = 0; i < MS_NUM_ANSWERS; i++)
        if (e->answers[i].question != NULL && e->answers[i].answer != NULL)
            ms_html_print(html, "<dt>%s</dt>\n<dd>%s</dd>\n", e->answers[i].question,
                          e->answers[i].answer);
    fputs("</dl>\n", html->out);
}
