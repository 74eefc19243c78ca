/* Sections of a page: where every coefficient comes from, and how to repeat the page. */
#include "cli/page/page_priv.h"

#include "base/json.h"
#include "cli/options/plan_command.h"

#include <math.h>
#include <string.h>

/* Terms of a training closer than this are the same: files round them. */
#define SAME_TERM_FRAC 1e-9

/* ---- coefficients ---- */

static const ms_explain_figure *first_with_source(const ms_explanation *e,
                                                  const ms_explain_figure *figure)
{
    const ms_explain_figure *first = e->figures;
    while (strcmp(first->source, figure->source) != 0)
        first++;
    return first;
}

static void write_counts(const ms_html *html, const ms_explanation *e)
{
    ms_html_print(html, "<p>%d coefficients enter this prediction:", e->num_figures);
    for (int from = 0; ms_provenance_names[from] != NULL; from++) {
        int count = 0;
        for (int i = 0; i < e->num_figures; i++)
            count += (int)e->figures[i].from == from;
        ms_html_print(html, "%s %d %s", from == 0 ? "" : ",", count,
                      ms_provenance_names[from]);
    }
    fputs(".</p>\n", html->out);
}

void ms_page_coefficients(const ms_html *html, const ms_page *page)
{
    const ms_explanation *e = page->explanation;
    write_counts(html, e);
    ms_html_table table =
        MS_HTML_TABLE(html, "t-coefficients", "Every coefficient with its source",
                      "lllrl", "coefficient", "file", "from", "value", "source");
    for (int i = 0; i < e->num_figures; i++) {
        const ms_explain_figure *f = &e->figures[i], *first = first_with_source(e, f);
        char value[64];
        ms_html_cell(&table, "%s", f->key);
        ms_html_cell(&table, "%s", f->file);
        ms_html_cell(&table, "%s", ms_provenance_names[f->from]);
        ms_html_cell(&table, "%s",
                     ms_format_quantity(value, sizeof value, f->value, f->unit));
        ms_html_cell(&table, "%s%s", first == f ? "" : "as ",
                     first == f ? f->source : first->key);
    }
    ms_html_table_end(&table);
}

/* ---- commands ---- */

static void put_command(const ms_html *html, const char *what, const char *command)
{
    ms_html_print(html, "<p>%s</p>\n<pre tabindex=\"0\"><code>%s</code></pre>\n", what,
                  command);
}

/* Writes the plan file; through a temporary file, since names in it must be escaped. */
static void write_plan(const ms_html *html, const ms_page *page)
{
    FILE *file = tmpfile();
    if (file == NULL)
        return; /* the commands above repeat the plan without it */
    ms_jout json = ms_jout_open(file);
    json.line_depth = 1;
    ms_plan_write_json(&json, page->plan);
    ms_jout_close(&json);
    rewind(file);
    fputs("<p>The plan itself (plan.json):</p>\n<pre tabindex=\"0\"><code>", html->out);
    ms_html_copy(html, file);
    fputs("</code></pre>\n", html->out);
    fclose(file);
}

/* A term of a training as an option. */
typedef struct term_flag {
    const char *flag, *unit;
    double value,
        otherwise; /* value, and what it is without the option; NaN: not known */
} term_flag;

static const char *add_flag(const ms_page *page, const char *text, const term_flag *f)
{
    bool is_default =
        isnan(f->value) || fabs(f->value / f->otherwise - 1.0) <= SAME_TERM_FRAC;
    return is_default ? text
                      : ms_arena_printf(page->arena, "%s %s %.12g%s", text, f->flag,
                                        f->value, f->unit);
}

/* Options that ask for the page's training: " --tokens 1e+12 --price 2"; "" without. */
static const char *training_flags(const ms_page *page)
{
    const ms_campaign_answer *a = page->campaign;
    if (a == NULL)
        return "";
    const ms_campaign_question nothing = ms_campaign_question_empty();
    const ms_campaign_terms *t = &a->terms,
                            d = ms_campaign_terms_of(&nothing, page->workload,
                                                     (double)page->plan->gpus);
    const double none = (double)NAN;
    const term_flag flags[] = {
        {"--tokens", "", t->tokens, none},
        {"--price", "", t->gpu_hour_price, d.gpu_hour_price},
        {"--power", "", t->gpu_power_w, d.gpu_power_w},
        {"--pue", "", t->pue, d.pue},
        {"--co2", "", t->co2_kg_per_kwh, none},
        {"--mtbf", "s", t->gpu_mean_s, d.gpu_mean_s},
        {"--restart", "s", t->restart_s, d.restart_s},
        {"--repair", "s", t->repair_s, none},
        {"--write-bandwidth", "B/s", t->write_bytes_per_s, d.write_bytes_per_s},
        {"--checkpoint-stall", "s", t->checkpoint_s,
         a->step.checkpoint_bytes / t->write_bytes_per_s},
        {"--deadline", "s", a->deadline_s, none},
        {"--budget", "", a->budget, none}};
    const char *text = "";
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        text = add_flag(page, text, &flags[i]);
    return text;
}

void ms_page_repeat(const ms_html *html, const ms_page *page)
{
    const char *flags = ms_plan_command_text(page->arena, page->plan);
    const char *training = training_flags(page),
               *searched = page->file_has_campaign ? training : "";
    put_command(html, "This page:", page->command);
    if (page->search != NULL)
        put_command(
            html, "The search:",
            ms_arena_printf(page->arena, "%s%s", page->search->command, searched));
    if (page->sweep != NULL && page->sweep->command != NULL)
        put_command(html, "The search of this point:",
                    ms_arena_printf(page->arena, "%s%s", page->sweep->command, searched));
    put_command(html, "The prediction (layers are split over stages as the stack does):",
                ms_arena_printf(page->arena, "meshsim predict %s%s", flags, training));
    put_command(html, "Every figure of it explained:",
                ms_arena_printf(page->arena, "meshsim explain %s", flags));
    put_command(
        html, "Contention, stragglers and a trace:",
        ms_arena_printf(page->arena, "meshsim simulate %s --trace step.json", flags));
    write_plan(html, page);
}
