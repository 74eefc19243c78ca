#include "cli/cmd/plot_files.h"

#include "base/paths.h"
#include "plots/gnuplot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY "/tmp"

static ms_status refuse_ending(ms_ctx *cx, const char *path)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "\"%s\" has no ending of a picture format: it must end in .png, .svg or .pdf",
            path);
    return ms_hint(cx, "or name the format: --format png");
}

/* Whether files can be written beside `path`: not for standard output and devices. */
static bool has_folder(const char *path)
{
    struct stat info;
    return strcmp(path, "-") != 0 && (lstat(path, &info) != 0 || S_ISREG(info.st_mode));
}

static const char *without_ending(ms_ctx *cx, const char *path)
{
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    bool ends = dot != NULL && dot != path && (slash == NULL || dot > slash + 1);
    return ends ? ms_arena_strndup(cx->arena, path, (size_t)(dot - path)) : path;
}

ms_status ms_plot_target_read(ms_ctx *cx, const char *kind, const char *path, int format,
                              bool keep, ms_plot_target *out)
{
    bool is_stdout = path != NULL && strcmp(path, "-") == 0;
    if (format < 0 && path != NULL && !is_stdout) {
        format = ms_picture_format_find(path);
        if (format < 0)
            return refuse_ending(cx, path);
    }
    *out = (ms_plot_target){
        .format = format < 0 ? MS_PICTURE_PNG : (ms_picture_format)format, .keep = keep};
    out->path = path != NULL ? path
                             : ms_arena_printf(cx->arena, "%s.%s", kind,
                                               ms_picture_format_names[out->format]);
    const char *base = has_folder(out->path) ? without_ending(cx, out->path) : kind;
    out->name = ms_path_name(base);
    out->data = ms_arena_printf(cx->arena, "%s.dat", base);
    out->script = ms_arena_printf(cx->arena, "%s.gp", base);
    return MS_OK;
}

static ms_status write_files(ms_ctx *cx, const ms_plot_target *target,
                             const ms_plot_writer *writer)
{
    ms_output out;
    MS_TRY(ms_output_open(cx, target->data, &out));
    writer->write_data(out.file, writer->plot);
    MS_TRY(ms_output_close(cx, &out, MS_OK));
    MS_TRY(ms_output_open(cx, target->script, &out));
    ms_status status =
        writer->write_script(cx, out.file, writer->plot, target->name, target->format);
    return ms_output_close(cx, &out, status);
}

/* Makes a temporary folder used by this call alone; NULL: an error is recorded. */
static char *make_scratch(ms_ctx *cx)
{
    char *folder = ms_arena_strdup(cx->arena, TEMPORARY "/meshsim-plot-XXXXXX");
    if (mkdtemp(folder) != NULL)
        return folder;
    ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot make a folder in %s: %s", TEMPORARY,
            strerror(errno));
    return NULL;
}

static ms_status leave_files(ms_ctx *cx, const ms_plot_target *target,
                             const ms_plot_writer *writer)
{
    if (strcmp(target->path, "-") == 0) {
        ms_fail(cx, MS_EIO, MS_NOWHERE,
                "gnuplot was not found, so there is no picture for standard output");
        return ms_hint(
            cx, "with -o FILE the data and script are written, to be rendered elsewhere");
    }
    if (!target->keep)
        MS_TRY(write_files(cx, target, writer));
    ms_note(
        cx,
        "gnuplot was not found, so there is no picture; %s and %s are written: gnuplot "
        "%s renders them",
        target->data, target->script, target->script);
    return MS_OK;
}

static ms_status copy_picture(ms_ctx *cx, FILE *from, ms_output *to)
{
    char block[4096];
    size_t got, sum = 0;
    rewind(from);
    for (; (got = fread(block, 1, sizeof block, from)) > 0; sum += got)
        (void)fwrite(block, 1, got, to->file); /* closing reports write errors */
    return sum > 0 ? MS_OK : ms_fail(cx, MS_EIO, MS_NOWHERE, "gnuplot drew nothing");
}

/* Renders a picture by gnuplot through a temporary file: gnuplot ignores write errors and
 * leaves a blank picture when it fails. */
static ms_status render(ms_ctx *cx, const char *script, ms_output *picture, bool *found)
{
    FILE *made = tmpfile();
    if (made == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot make a temporary file: %s",
                       strerror(errno));
    ms_status status = ms_gnuplot_run(cx, script, fileno(made), found);
    if (status == MS_OK && *found)
        status = copy_picture(cx, made, picture);
    fclose(made);
    return status;
}

/* Writes data and script and renders them; without gnuplot `*found` is false. */
static ms_status try_render(ms_ctx *cx, const ms_plot_target *target,
                            const ms_plot_writer *writer, ms_output *picture, bool *found)
{
    if (target->keep) {
        MS_TRY(write_files(cx, target, writer));
        return render(cx, target->script, picture, found);
    }
    const char *folder = make_scratch(cx);
    if (folder == NULL)
        return MS_EIO;
    ms_plot_target scratch = *target;
    scratch.data = ms_arena_printf(cx->arena, "%s/%s.dat", folder, target->name);
    scratch.script = ms_arena_printf(cx->arena, "%s/%s.gp", folder, target->name);
    ms_status status = write_files(cx, &scratch, writer);
    if (status == MS_OK)
        status = render(cx, scratch.script, picture, found);
    if (status != MS_OK)
        ms_hint(cx, "--keep keeps the script for inspection");
    (void)remove(scratch.data); /* a file that cannot be removed stays */
    (void)remove(scratch.script);
    (void)rmdir(folder);
    return status;
}

ms_status ms_plot_render(ms_ctx *cx, const ms_plot_target *target,
                         const ms_plot_writer *writer, ms_output *picture, bool *rendered)
{
    bool found = false;
    ms_status status = try_render(cx, target, writer, picture, &found);
    *rendered = status == MS_OK && found;
    if (*rendered)
        return ms_output_close(cx, picture, MS_OK);
    ms_output_drop(cx, picture);
    return status == MS_OK ? leave_files(cx, target, writer) : status;
}
