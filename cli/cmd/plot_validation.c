/* meshsim plot validation: predicted against measured step times and memory peaks. */
#include "cli/cmd/calibrate_runs.h"
#include "cli/cmd/plot_request.h"
#include "cli/options/tables.h"
#include "plots/validation_data.h"
#include "sim/validate/run_rules.h"

#include <string.h>

MS_PLOTTED_FUNCTIONS(ms_validation_plot, (out, plot))

/* Reads the published runs of all tables of the command line. */
static ms_status read_runs(const ms_plot_request *r, ms_pubruns *out)
{
    ms_ctx *cx = r->cx;
    const ms_words *words = &r->args->words;
    *out = (ms_pubruns){0};
    for (int i = 1; i < words->num_words; i++) {
        ms_table_file table;
        MS_TRY(ms_plot_check_input(r, words->words[i]));
        MS_TRY(ms_table_file_load(cx, words->words[i], &table));
        if (table.kind != MS_TABLE_RUNS) {
            ms_fail(cx, MS_EINPUT, (ms_loc){.file = table.name},
                    "this is a table of %s, not of published runs",
                    ms_table_kind_names[table.kind]);
            return ms_hint(cx, "meshsim plot calibration draws it");
        }
        ms_pubruns more;
        MS_TRY(ms_pubruns_read(cx, table.name, table.text, table.length, &more));
        ms_pubruns_append(cx->arena, out, &more);
    }
    ms_run_faults_note(cx, out);
    return ms_pubruns_check_rules(cx, out);
}

ms_status ms_plot_validation(ms_plot_request *r)
{
    ms_ctx *cx = r->cx;
    const ms_words *words = &r->args->words;
    if (words->num_words < 2) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "no table is given");
        return ms_hint(cx, "usage: meshsim plot validation RUNS.csv...");
    }
    ms_pubruns runs;
    ms_validation validation;
    MS_TRY(read_runs(r, &runs));
    MS_TRY(ms_validate(cx, &runs, &validation));
    ms_validation_plot plot = ms_validation_plot_make(cx->arena, &validation);
    if (plot.num_sources > 0)
        return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_validation_plot, &plot));
    ms_fail(cx, MS_EINPUT, (ms_loc){.file = words->words[1]}, "no run can be predicted");
    return ms_hint(cx, "meshsim validate counts why");
}
