/* meshsim plot calibration: measured against fitted times of a profile or a table. */
#include "cli/cmd/plot_request.h"

#include "base/paths.h"
#include "cli/options/tables.h"
#include "plots/calibration_data.h"

#include <string.h>

#define DEFAULT_CLUSTER "cpu"
#define STACK           "meshsim" /* whose attention `meshsim calibrate` measures */

MS_PLOTTED_FUNCTIONS(ms_calibration_plot, (out, plot))

static ms_status add_profile(const ms_plot_request *r, const char *path,
                             ms_calibration_plot *plot)
{
    ms_ctx *cx = r->cx;
    const char *name = r->plan.of[MS_CHOOSE_CLUSTER].text;
    const ms_cluster *cluster;
    const ms_profile *profile;
    const ms_stack *stack;
    MS_TRY(ms_profile_load(cx, path, &profile));
    if (profile->measured == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "profile \"%s\" keeps no measured times",
                profile->name);
        return ms_hint(cx, "meshsim calibrate -o PROFILE.json writes one that does");
    }
    MS_TRY(ms_cluster_load(cx, name != NULL ? name : DEFAULT_CLUSTER, &cluster));
    MS_TRY(ms_profile_load_for(cx, path, cluster, &profile));
    MS_TRY(ms_stack_load(cx, STACK, &stack));
    if (name == NULL)
        ms_note_default(cx, "--cluster %s", DEFAULT_CLUSTER);
    return ms_calibration_plot_add_profile(cx, cluster, profile, stack, plot);
}

static ms_status add_table(const ms_plot_request *r, const ms_table_file *table,
                           ms_calibration_plot *plot)
{
    ms_ctx *cx = r->cx;
    if (table->kind == MS_TABLE_KERNELS) {
        ms_kernel_rows rows;
        ms_kernel_validation v;
        MS_TRY(ms_kernel_rows_read(cx, table->name, table->text, table->length, &rows));
        ms_faults_note(cx, &rows.skipped);
        MS_TRY(ms_kernel_validate(cx, &rows, &v));
        ms_calibration_plot_add_kernels(&v, plot);
        return MS_OK;
    }
    if (table->kind == MS_TABLE_COLLECTIVES) {
        ms_collective_rows rows;
        ms_collective_validation v;
        MS_TRY(
            ms_collective_rows_read(cx, table->name, table->text, table->length, &rows));
        ms_faults_note(cx, &rows.skipped);
        ms_collective_validate(cx, &rows, &v);
        ms_calibration_plot_add_collectives(&v, plot);
        return MS_OK;
    }
    ms_fail(cx, MS_EINPUT, (ms_loc){.file = table->name},
            "this is no table of kernels or collectives");
    return ms_hint(cx, "meshsim plot validation draws published runs");
}

/* Reads a table, as its name ends in .csv or it comes from standard input. */
static ms_status read_table(const ms_plot_request *r, const char *path,
                            ms_calibration_plot *plot)
{
    ms_table_file table;
    if (ms_plan_is_given(&r->plan, MS_CHOOSE_CLUSTER))
        return ms_fail(r->cx, MS_EINPUT, MS_NOWHERE,
                       "--cluster is for a profile: each row of a table has its own");
    MS_TRY(ms_table_file_load(r->cx, path, &table));
    MS_TRY(add_table(r, &table, plot));
    if (plot->num_points > 0)
        return MS_OK;
    ms_fail(r->cx, MS_EINPUT, (ms_loc){.file = table.name}, "no row can be predicted");
    return ms_hint(r->cx, "meshsim validate counts why");
}

ms_status ms_plot_calibration(ms_plot_request *r)
{
    ms_ctx *cx = r->cx;
    const char *path = r->args->words.num_words > 1 ? r->args->words.words[1] : NULL;
    if (path == NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "no profile or table is given");
        return ms_hint(cx, "usage: meshsim plot calibration PROFILE.json|FILE.csv");
    }
    MS_TRY(ms_plot_check_input(r, path));
    ms_calibration_plot plot = {.arena = cx->arena, .name = ms_path_name(path)};
    const char *dot = strrchr(path, '.');
    bool is_table = strcmp(path, "-") == 0 || (dot != NULL && strcmp(dot, ".csv") == 0);
    MS_TRY(is_table ? read_table(r, path, &plot) : add_profile(r, path, &plot));
    return ms_plot_show(r, &(ms_plotted)MS_PLOTTED(ms_calibration_plot, &plot));
}
