/* Writes errors of kernels and collectives, and coefficients fitted to them, as JSON. */
#include "sim/validate/collectives_fit.h"
#include "sim/validate/kernels_fit.h"
#include "sim/validate/pubrun_prices.h"

/* ---- errors ---- */

static void write_kernel_scores(ms_jout *out, const char *key,
                                const ms_kernel_score *scores, int num_scores)
{
    ms_jout_begin_array_field(out, key);
    for (int i = 0; i < num_scores; i++) {
        const ms_kernel_score *score = &scores[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "gpu", score->gpu);
        ms_jout_text_field(out, "source", score->source);
        if (score->op != NULL) {
            ms_jout_text_field(out, "op", score->op);
            ms_jout_text_field(out, "dtype", score->dtype);
        }
        ms_row_errors_write(out, "fitted", &score->fitted);
        ms_row_errors_write(out, "not_fitted", &score->others);
        ms_jout_number_field(out, "rate_frac", score->rate_frac);
        ms_jout_number_field(out, "launch_s", score->launch_s);
        ms_row_errors_write(out, "at_its_rate", &score->adapted);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

/* Writes the last fields of a row, of whatever kind, and ends its object. */
static void end_row(ms_jout *out, bool fitted, double measured_s, double predicted_s)
{
    ms_jout_bool_field(out, "fitted", fitted);
    ms_jout_number_field(out, "measured_s", measured_s);
    ms_jout_number_field(out, "predicted_s", predicted_s);
    ms_jout_number_field(out, "error_frac",
                         ms_pubrun_error_frac(predicted_s, measured_s));
    ms_jout_end_object(out);
}

static void write_kernel_row(ms_jout *out, const ms_kernel_row *row, double predicted_s)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "line", row->line);
    ms_jout_text_field(out, "gpu", row->gpu);
    ms_jout_text_field(out, "op", row->op);
    end_row(out, row->fitted, row->measured_s, predicted_s);
}

void ms_kernel_validation_write_json(ms_jout *out, const ms_kernel_validation *v)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.validation-kernels/1");
    ms_jout_number_field(out, "rows", v->rows->num_rows);
    ms_jout_number_field(out, "priced", v->num_priced);
    write_kernel_scores(out, "by_source", v->sources, v->num_sources);
    write_kernel_scores(out, "by_operation", v->details, v->num_details);
    ms_skipped_write(out, &v->rows->skipped);
    ms_jout_begin_array_field(out, "kernels");
    for (int i = 0; i < v->rows->num_rows; i++)
        if (v->rows->rows[i].reason == NULL)
            write_kernel_row(out, &v->rows->rows[i], v->predicted_s[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

static void write_collective_scores(ms_jout *out, const char *key,
                                    const ms_collective_score *scores, int num_scores)
{
    ms_jout_begin_array_field(out, key);
    for (int i = 0; i < num_scores; i++) {
        const ms_collective_score *score = &scores[i];
        ms_jout_begin_object(out);
        ms_jout_text_field(out, "system", score->system);
        ms_jout_text_field(out, "cluster", score->cluster);
        if (score->collective != NULL) {
            ms_jout_text_field(out, "collective", score->collective);
            ms_jout_number_field(out, "nodes", (double)score->nodes);
        }
        ms_jout_number_field(out, "fitted_rows", score->num_fitted);
        ms_row_errors_write(out, "from_1_mib", &score->large);
        ms_row_errors_write(out, "below_1_mib", &score->small);
        ms_jout_end_object(out);
    }
    ms_jout_end_array(out);
}

static void write_collective_row(ms_jout *out, const ms_collective_row *row,
                                 double predicted_s)
{
    ms_jout_begin_object(out);
    ms_jout_number_field(out, "line", row->line);
    ms_jout_text_field(out, "system", row->system);
    ms_jout_text_field(out, "cluster", row->cluster->name);
    ms_jout_text_field(out, "collective", ms_collective_names[row->collective]);
    ms_jout_text_field(out, "algorithm",
                       ms_algorithm_name(ms_collective_row_algorithm(row)));
    ms_jout_number_field(out, "gpus", (double)row->gpus);
    ms_jout_number_field(out, "nodes", (double)row->nodes);
    ms_jout_number_field(out, "size_bytes", row->size_bytes);
    end_row(out, row->fitted, row->measured_s, predicted_s);
}

void ms_collective_validation_write_json(ms_jout *out, const ms_collective_validation *v)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.validation-collectives/1");
    ms_jout_number_field(out, "rows", v->rows->num_rows);
    ms_jout_number_field(out, "priced", v->num_priced);
    write_collective_scores(out, "by_system", v->systems, v->num_systems);
    write_collective_scores(out, "by_collective", v->details, v->num_details);
    ms_skipped_write(out, &v->rows->skipped);
    ms_jout_begin_array_field(out, "collectives");
    for (int i = 0; i < v->rows->num_rows; i++)
        if (v->rows->rows[i].reason == NULL)
            write_collective_row(out, &v->rows->rows[i], v->predicted_s[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

/* ---- fitted coefficients ---- */

static void write_kernel_fit(ms_jout *out, const ms_kernel_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "profile", fit->law.profile);
    ms_jout_text_field(out, "law", fit->law.law);
    ms_jout_text_field(out, "source", fit->source);
    ms_jout_number_field(out, "rows", fit->law.fit.num_points);
    ms_jout_number_field(out, "median_ape", fit->law.fit.median_error_frac);
    ms_law_fit_write_values(out, &fit->law);
    ms_row_errors_write(out, "other_half_shipped", &fit->shipped_errors);
    ms_row_errors_write(out, "other_half_fitted", &fit->fitted_errors);
    ms_jout_end_object(out);
}

void ms_kernels_fit_write_json(ms_jout *out, const ms_kernels_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.fit-kernels/1");
    ms_jout_begin_array_field(out, "fits");
    for (int i = 0; i < fit->num_fits; i++)
        write_kernel_fit(out, &fit->fits[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}

static void write_collective_fit(ms_jout *out, const ms_collective_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "profile", fit->law.profile);
    ms_jout_text_field(out, "law", fit->law.law);
    ms_jout_number_field(out, "rows", fit->law.fit.num_points);
    ms_jout_number_field(out, "systems", fit->num_systems);
    ms_jout_number_field(out, "median_ape", fit->law.fit.median_error_frac);
    ms_law_fit_write_values(out, &fit->law);
    ms_jout_end_object(out);
}

static void write_system(ms_jout *out, const ms_system_errors *system)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "system", system->system);
    ms_jout_text_field(out, "profile", system->profile);
    ms_jout_text_field(out, "law", system->law);
    ms_row_errors_write(out, "shipped_from_1_mib", &system->shipped_large);
    ms_row_errors_write(out, "shipped_below_1_mib", &system->shipped_small);
    if (system->has_others) {
        ms_row_errors_write(out, "by_others_from_1_mib", &system->large);
        ms_row_errors_write(out, "by_others_below_1_mib", &system->small);
    }
    ms_jout_end_object(out);
}

static void write_undetermined(ms_jout *out, const ms_undetermined *untold)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "profile", untold->profile);
    ms_jout_text_field(out, "name", untold->key);
    ms_jout_number_field(out, "shipped", untold->shipped->value);
    ms_jout_text_field(out, "from", ms_provenance_names[untold->shipped->from]);
    ms_jout_text_field(out, "source", untold->shipped->source);
    ms_jout_end_object(out);
}

void ms_collectives_fit_write_json(ms_jout *out, const ms_collectives_fit *fit)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "schema", "meshsim.fit-collectives/1");
    ms_jout_begin_array_field(out, "fits");
    for (int i = 0; i < fit->num_fits; i++)
        write_collective_fit(out, &fit->fits[i]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "holdout");
    for (int i = 0; i < fit->num_systems; i++)
        write_system(out, &fit->systems[i]);
    ms_jout_end_array(out);
    ms_jout_begin_array_field(out, "untold");
    for (int i = 0; i < fit->num_undetermined; i++)
        write_undetermined(out, &fit->untold[i]);
    ms_jout_end_array(out);
    ms_jout_end_object(out);
}
