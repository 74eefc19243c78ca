/* Section of a page: the other jobs of a sweep, and what each is best at. */
#include "cli/page/page_priv.h"

#include "cli/report/sweep_report.h"
#include "plots/caption.h"
#include "sim/planning/campaign_text.h"
#include "sim/step/prediction_text.h"

#include <math.h>

static void number_cell(ms_html_table *table, int decimals, double value)
{
    if (isnan(value))
        ms_html_cell(table, "-");
    else
        ms_html_cell(table, "%.*f", decimals, value);
}

static const char *mark_text(const ms_page *page, const ms_plan_sweep_choice *choice,
                             int i)
{
    const ms_page_point *p = &page->sweep->points[i];
    if (!p->found)
        return p->reason != NULL ? p->reason : "no plan";
    const char *mark = p->keeps_limits ? ms_sweep_mark_text(page->arena, choice, i)
                       : p->broken_limit != NULL ? p->broken_limit
                                                 : "beyond a limit";
    if (i != page->sweep->reported)
        return mark;
    return ms_arena_printf(page->arena, "%s%s%s", mark, mark[0] == '\0' ? "" : "; ",
                           page->search != NULL ? "the size of this page"
                                                : "reported here");
}

static void point_row(ms_html_table *table, const ms_page *page,
                      const ms_plan_sweep_choice *choice, int i)
{
    const ms_page_point *p = &page->sweep->points[i];
    ms_arena *arena = page->arena;
    ms_html_cell(table, "%s", ms_caption_name(arena, p->cluster));
    number_cell(table, 0, p->gpus);
    ms_html_cell(table, "%s", isnan(p->step_s) ? "-" : ms_amount_text(arena, p->step_s));
    number_cell(table, 0, p->tokens_per_s);
    number_cell(table, 1, 100.0 * p->mfu_frac);
    number_cell(table, 1, ms_gib(p->peak_bytes));
    number_cell(table, 1, p->elapsed_s / MS_DAY_S);
    ms_html_cell(table, "%s",
                 isnan(p->gpu_hours) ? "-" : ms_large_text(arena, p->gpu_hours, " "));
    ms_html_cell(table, "%s", isnan(p->cost) ? "-" : ms_large_text(arena, p->cost, " "));
    ms_html_cell(table, "%s", mark_text(page, choice, i));
}

/* ", 512 a step": the batch of a task, if its jobs share one and the first jobs of other
 * tasks have others. */
static const char *batch_text(const ms_page *page, int task)
{
    const ms_page_sweep *sweep = page->sweep;
    int each = sweep->num / sweep->num_tasks;
    double batch = sweep->points[task * each].global_batch;
    bool differs = false;
    for (int i = 0; i < sweep->num; i++) {
        bool is_same = sweep->points[i].global_batch == batch;
        if (!is_same && i / each == task)
            return "";
        differs = differs || !is_same;
    }
    return differs ? ms_arena_printf(page->arena, ", %.0f a step", batch) : "";
}

static void task_table(const ms_html *html, const ms_page *page, int task)
{
    const ms_page_sweep *sweep = page->sweep;
    int each = sweep->num / sweep->num_tasks;
    const ms_page_point *first = &sweep->points[task * each];
    ms_html_table table =
        MS_HTML_TABLE(html, ms_arena_printf(page->arena, "t-sweep-%d", task),
                      ms_arena_printf(page->arena, "%s, sequences of %.0f%s",
                                      ms_caption_name(page->arena, first->model),
                                      first->sequence_length, batch_text(page, task)),
                      "lrrrrrrrrl", "cluster", "GPUs", "step (s)", "tokens/s", "MFU (%)",
                      "peak (GiB)", "days", "GPU-hours", "cost", "best");
    for (int i = task * each; i < (task + 1) * each; i++)
        point_row(&table, page, &sweep->choices[task], i);
    ms_html_table_end(&table);
}

void ms_page_of_sweep(const ms_html *html, const ms_page *page)
{
    const ms_page_sweep *sweep = page->sweep;
    ms_html_print(html, "<p>%s</p>\n", sweep->about);
    for (int task = 0; task < sweep->num_tasks; task++)
        task_table(html, page, task);
    if (page->search == NULL) {
        ms_html_print(html,
                      "<p>Pareto: no other job is both faster and cheaper. Fastest, "
                      "cheapest and fewest GPUs are of the jobs that keep deadline and "
                      "budget.</p>\n");
    }
}
