/* Prints how well P(fit) separates runs that finished from runs that did not. */
#include "cli/report/report.h"

#include "base/print.h"
#include "sim/validate/fits_score.h"

#include <math.h>

static void print_bins(FILE *out, ms_arena *arena, const ms_fits_score *score)
{
    ms_table *table =
        MS_TABLE(arena, "rrrr", "P(fit)", "layouts", "finished (%)", "of the rest (%)");
    for (int i = 0; i < MS_FITS_BINS; i++) {
        const ms_fits_bin *bin = &score->bins[i];
        if (bin->num > 0)
            ms_table_cells(table, "%.2f to %.2f\t%d\t%.1f\t%.1f", bin->from, bin->to,
                           bin->num, 100.0 * bin->finished_frac,
                           100.0 * bin->finished_of_rest_frac);
    }
    ms_table_print(table, out);
}

static void print_models(FILE *out, ms_arena *arena, const ms_fits_score *score)
{
    ms_table *table = MS_TABLE(arena, "lrrrr", "model", "finished", "unfinished",
                               "below half of the device", "of these unfinished (%)");
    for (int i = 0; i < score->num_models; i++) {
        const ms_fits_model *model = &score->models[i];
        ms_table_cell(table, "%s: %s", model->source, model->model);
        ms_table_cells(table, "%d\t%d\t%d\t%.1f", model->num_finished,
                       model->num_unfinished, model->num_low, 100.0 * model->floor_frac);
    }
    ms_table_print(table, out);
}

void ms_fits_print(FILE *out, ms_arena *arena, const ms_fits_score *score)
{
    if (score->num_unfinished == 0)
        return;
    ms_print(out,
             "\nfinished against unfinished by P(fit): %d and %d layouts, Brier score "
             "%.3f",
             score->num_finished, score->num_unfinished, score->brier);
    if (!isnan(score->auc))
        ms_print(out, ", AUC %.3f", score->auc);
    fputc('\n', out);
    print_bins(out, arena, score);
    fputs("Finished runs count where their source and model has unfinished ones, too: "
          "elsewhere they prove nothing by having run.\nP(fit) is of memory alone; the "
          "rest are the layouts less those that crash at any fill, taken to be as many "
          "as below half of the device:\n",
          out);
    print_models(out, arena, score);
}

void ms_fits_capacities_print(FILE *out, ms_arena *arena,
                              const ms_fits_capacity capacities[MS_FITS_CAPACITIES])
{
    if (capacities[0].num_runs < MS_POOLED_SOURCES)
        return;
    fputs("\npeaks that a capacity of given P(fit) holds, by errors of other sources\n",
          out);
    ms_table *table =
        MS_TABLE(arena, "rrr", "P(fit)", "of all runs (%)", "mean over sources (%)");
    for (int i = 0; i < MS_FITS_CAPACITIES; i++)
        ms_table_cells(table, "%.2f\t%.1f\t%.1f", capacities[i].probability,
                       100.0 * capacities[i].held_frac,
                       100.0 * capacities[i].macro_held_frac);
    ms_table_print(table, out);
}
