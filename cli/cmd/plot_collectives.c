/* meshsim plot collectives: a collective over message sizes on a cluster's tiers. */
#include "cli/cmd/plot_request.h"

#include "cli/options/tables.h"
#include "plots/collectives_data.h"

MS_PLOTTED_FUNCTIONS(ms_collectives_plot, (out, plot))

static ms_status read_rows(const ms_plot_request *r, const char *path,
                           ms_collective_rows *out)
{
    ms_table_file table;
    MS_TRY(ms_plot_check_input(r, path));
    MS_TRY(ms_table_file_load(r->cx, path, &table));
    if (table.kind != MS_TABLE_COLLECTIVES)
        return ms_fail(r->cx, MS_EINPUT, (ms_loc){.file = table.name},
                       "this is a table of %s, not of collectives",
                       ms_table_kind_names[table.kind]);
    MS_TRY(ms_collective_rows_read(r->cx, table.name, table.text, table.length, out));
    ms_faults_note(r->cx, &out->skipped);
    return MS_OK;
}

ms_status ms_plot_collectives(ms_plot_request *r)
{
    ms_ctx *cx = r->cx;
    ms_plan plan;
    const ms_cluster *cluster;
    const ms_profile *profile;
    MS_TRY(ms_plot_mesh(r, &plan, &cluster));
    MS_TRY(ms_profile_load_for(
        cx, plan.profile != NULL ? plan.profile : cluster->device.profile, cluster,
        &profile));
    ms_collective_rows rows;
    const char *path = r->options.measured;
    if (path != NULL)
        MS_TRY(read_rows(r, path, &rows));
    const ms_opt_choice *collective = &r->options.collective;
    ms_collectives_plot plot = {.collective = collective->given
                                                  ? (ms_collective)collective->value
                                                  : MS_ALL_REDUCE};
    MS_TRY(ms_collectives_plot_make(cx, cluster, profile, plan.gpus,
                                    path != NULL ? &rows : NULL, &plot));
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_collectives_plot, &plot));
}
