/* Prints an explanation: summary and answers first, then collectives with their reasons,
 * tensors, and coefficients of the cost model with their sources. */
#include "base/print.h"
#include "cli/report/explain_print_priv.h"
#include "sim/step/prediction_text.h"

#include <math.h>
#include <string.h>

#define NUM_FIGURES 12

/* ---- summary ---- */

static void print_sharding(FILE *out, const ms_explanation *e)
{
    static const char *const kept[] = {"optimizer states", "optimizer states",
                                       "optimizer states and gradients",
                                       "optimizer states, gradients and parameters"};
    const char *dense = ms_explain_state_axis(e, false),
               *expert = ms_explain_state_axis(e, true);
    bool experts = e->planned->workload->model->moe.num_experts > 0;
    if (dense == NULL && (!experts || expert == NULL)) {
        fputs("states   whole on every data-parallel rank\n", out);
        return;
    }
    ms_print(out, "states   zero %ld: %s are shards over %s", e->plan->zero,
             kept[e->plan->zero], dense == NULL ? "nothing" : dense);
    if (experts && expert != NULL && (dense == NULL || strcmp(expert, dense) != 0))
        ms_print(out, ", those of experts over %s", expert);
    fputc('\n', out);
}

static void print_summary(FILE *out, ms_arena *arena, const ms_explanation *e)
{
    const ms_prediction *p = &e->prediction;
    ms_print(out, "%s\n", ms_plan_inputs_text(arena, e->plan, p->unit));
    ms_print(out, "plan     %s\n", ms_plan_text(arena, e->plan));
    print_sharding(out, e);
    ms_print(out,
             "step     %.*f s: compute %.1f %%, exposed communication %.1f %%, bubble "
             "%.1f %%\n",
             ms_decimals(p->step_s), p->step_s, 100.0 * p->compute_s / p->step_s,
             100.0 * p->exposed_comm_s / p->step_s, 100.0 * p->bubble_s / p->step_s);
    const char *interval = ms_interval_text(arena, e->plan, p);
    if (interval != NULL)
        ms_print(out, "         %.*f to %.*f s: %s\n", ms_decimals(p->step_s),
                 p->step_low_s, ms_decimals(p->step_s), p->step_high_s, interval);
    ms_print(out, "memory   peak %.2f GiB%s of %.2f GiB%s\n", ms_gib(p->peak_bytes),
             ms_outside_text(arena, p), ms_gib(p->capacity_bytes),
             p->fits ? "" : ": DOES NOT FIT");
    if (p->num_stages > 1)
        ms_print(out, "rank     %d of the pipeline, %ld micro-batches a step\n", e->rank,
                 ms_plan_microbatches(e->plan));
    else
        ms_print(out, "         %ld micro-batches a step\n",
                 ms_plan_microbatches(e->plan));
}

static void print_axes(FILE *out, ms_arena *arena, const ms_explanation *e)
{
    if (e->num_axes == 0)
        return;
    int decimals = ms_decimals(e->prediction.step_s) + 1;
    const char *inner = e->planned->workload->cluster->levels[0].name;
    ms_table *table =
        MS_TABLE(arena, "lrrlrrrrr", "axis", "size", "ranks per node", "tier",
                 "sent (GB/step)", ms_arena_printf(arena, "by %s (GB)", inner),
                 "by NIC (GB)", "time (s)", "exposed (s)");
    for (int i = 0; i < e->num_axes; i++) {
        const ms_axis_prediction *axis = &e->axes[i];
        ms_table_cells(table, "%s\t%ld\t%ld\t%s", axis->axis, axis->size,
                       axis->ranks_per_node, axis->tier);
        const double sent_gb[] = {axis->bytes / 1e9,
                                  (axis->bytes - axis->nic_bytes) / 1e9,
                                  axis->nic_bytes / 1e9};
        for (int column = 0; column < 3; column++)
            ms_table_cell(table, "%s", ms_amount_text(arena, sent_gb[column]));
        ms_table_cells(table, "%.*f\t%.*f", decimals, axis->seconds, decimals,
                       axis->exposed_s);
    }
    fputs("\ntraffic of one rank by axis\n", out);
    ms_table_print(table, out);
}

static void print_answers(FILE *out, const ms_explanation *e)
{
    fputs("\nquestions\n", out);
    for (int i = 0; i < MS_NUM_ANSWERS; i++) {
        ms_print(out, "  %s\n", e->answers[i].question);
        ms_print_paragraph(out, e->answers[i].answer, 4);
    }
}

/* ---- figures ---- */

static const char *effect_text(ms_arena *arena, double effect)
{
    if (isnan(effect))
        return "-";
    return fabs(effect) < 5e-5 ? "0" : ms_arena_printf(arena, "%+.4f", effect);
}

static void figure_row(ms_table *table, ms_arena *arena, const ms_explain_figure *f)
{
    char value[64];
    ms_table_cells(table, "%s\t%s\t%s\t%s\t%s\t%s", f->file, f->key,
                   ms_format_quantity(value, sizeof value, f->value, f->unit),
                   ms_provenance_names[f->from], effect_text(arena, f->step_effect),
                   effect_text(arena, f->memory_effect));
}

static void print_counts(FILE *out, const ms_explanation *e)
{
    ms_print(out, "%d figures enter this prediction:", e->num_figures);
    for (int from = 0; ms_provenance_names[from] != NULL; from++) {
        int count = 0;
        for (int i = 0; i < e->num_figures; i++)
            count += (int)e->figures[i].from == from;
        ms_print(out, "%s %d %s", from == 0 ? "" : ",", count, ms_provenance_names[from]);
    }
    fputc('\n', out);
}

/* Index of the first coefficient with the same source as coefficient `figure`. */
static int first_with_source(const ms_explanation *e, int figure)
{
    int first = 0;
    while (strcmp(e->figures[first].source, e->figures[figure].source) != 0)
        first++;
    return first;
}

static void print_sources(FILE *out, ms_arena *arena, const ms_explanation *e)
{
    fputs("\nwhere they come from\n", out);
    for (int i = 0; i < e->num_figures; i++) {
        const ms_explain_figure *f = &e->figures[i];
        int first = first_with_source(e, i);
        const char *source = f->source;
        if (first < i)
            source = ms_arena_printf(arena, "as %s", e->figures[first].key);
        ms_print(out, "  %s: %s (%s)\n", f->file, f->key, f->help);
        ms_print_paragraph(
            out, ms_arena_printf(arena, "%s: %s", ms_provenance_names[f->from], source),
            4);
    }
}

static void print_figures(FILE *out, ms_arena *arena, const ms_explanation *e,
                          const ms_explain_view *view)
{
    ms_table *table = MS_TABLE(arena, "Llrlrr", "file", "coefficient", "value", "from",
                               "step (%/%)", "memory (%/%)");
    int shown =
        view->sources || e->num_figures < NUM_FIGURES ? e->num_figures : NUM_FIGURES;
    for (int i = 0; i < shown; i++)
        figure_row(table, arena, &e->figures[i]);
    fputs("\ncoefficients, by what a change of them does\n", out);
    ms_table_print(table, out);
    print_counts(out, e);
    if (view->sources)
        print_sources(out, arena, e);
    else
        fputs("--coefficients shows all of them with their sources\n", out);
}

void ms_explanation_print(FILE *out, ms_arena *arena, const ms_explanation *e,
                          const ms_explain_view *view)
{
    print_summary(out, arena, e);
    print_axes(out, arena, e);
    if (view->answers)
        print_answers(out, e);
    if (view->collectives)
        ms_print_collectives(out, arena, e, view);
    if (view->tensors)
        ms_print_tensors(out, arena, e, view);
    if (view->figures)
        print_figures(out, arena, e, view);
}
