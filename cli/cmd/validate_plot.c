#include "cli/cmd/validate_plot.h"

#include "plots/validation_data.h"

#include <string.h>

ms_status ms_validate_plot_open(ms_ctx *cx, const ms_args *args, const char *path,
                                const char *runs, ms_plot_target *out)
{
    const char *tables = args->common.output;
    if (strcmp(path, "-") == 0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--plot is \"-\", must be a file: standard output is for the tables");
        return ms_hint(cx, "--plot FILE.png");
    }
    if (ms_picture_format_find(path) < 0)
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                       "--plot is \"%s\", must end in .png, .svg or .pdf", path);
    MS_TRY(ms_plot_target_read(cx, "validation", path, -1, false, out));
    const char *const paths[] = {runs, tables, out->path, out->data, out->script};
    MS_TRY(ms_output_check_distinct(cx, paths, sizeof paths / sizeof *paths));
    return ms_output_check_writable(cx, path);
}

MS_PLOT_WRITER_FUNCTIONS(ms_validation_plot)

ms_status ms_validate_plot_write(ms_ctx *cx, const ms_plot_target *target,
                                 const ms_validation *validation)
{
    ms_validation_plot plot = ms_validation_plot_make(cx->arena, validation);
    if (plot.num_sources == 0) {
        ms_note(cx, "no run was predicted, so there is nothing to draw");
        return MS_OK;
    }
    ms_output picture;
    MS_TRY(ms_output_open(cx, target->path, &picture));
    const ms_plot_writer writer = MS_PLOT_WRITER(ms_validation_plot, &plot);
    bool rendered;
    return ms_plot_render(cx, target, &writer, &picture, &rendered);
}
