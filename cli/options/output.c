#include "cli/options/output.h"

#include "base/print.h"
#include "base/units.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_COLUMNS 10000

static bool reader_is_gone;

bool ms_output_reader_is_gone(void)
{
    return reader_is_gone;
}

static bool is_path(const char *path)
{
    return path != NULL && strcmp(path, "-") != 0;
}

static ms_status fail_write(ms_ctx *cx, const char *path, int error)
{
    if (path == NULL && error == EPIPE) {
        reader_is_gone = true;
        return MS_EIO;
    }
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot write %s: %s",
                   path == NULL ? "standard output" : path, strerror(error));
}

ms_status ms_output_open(ms_ctx *cx, const char *path, ms_output *out)
{
    *out = (ms_output){.file = stdout, .json = ms_jout_open(stdout)};
    if (!is_path(path))
        return MS_OK;
    out->path = path;
    struct stat info;
    bool exists = lstat(path, &info) == 0;
    bool in_place = exists && !S_ISREG(info.st_mode);
    if (exists && !in_place && access(path, W_OK) != 0)
        return fail_write(cx, path, errno); /* rename() would replace a read-only file */
    if (in_place) {
        out->file = fopen(path, "w");
    } else {
        out->temporary = ms_arena_printf(cx->arena, "%s.%ld.tmp", path, (long)getpid());
        out->file = fopen(out->temporary, "wx");
    }
    if (out->file == NULL)
        return fail_write(cx, path, errno);
    out->json.file = out->file;
    if (exists && !in_place)
        (void)fchmod(fileno(out->file),
                     info.st_mode & 07777); /* failure keeps the default mode */
    return MS_OK;
}

ms_status ms_output_check_writable(ms_ctx *cx, const char *path)
{
    struct stat info;
    ms_output out;
    if (!is_path(path))
        return MS_OK;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return fail_write(cx, path, EISDIR);
    /* never opens devices, pipes and links */
    if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return access(path, W_OK) == 0 || errno == ENOENT ? MS_OK
                                                          : fail_write(cx, path, errno);
    MS_TRY(ms_output_open(cx, path, &out));
    ms_output_drop(cx, &out);
    return MS_OK;
}

/* Looks up the folder of `path`; `*name` becomes the file name in the folder. */
static bool stat_folder(ms_ctx *cx, const char *path, struct stat *info,
                        const char **name)
{
    const char *slash = strrchr(path, '/');
    *name = slash == NULL ? path : slash + 1;
    if (slash == NULL)
        return stat(".", info) == 0;
    size_t length = slash == path ? 1 : (size_t)(slash - path);
    return stat(ms_arena_strndup(cx->arena, path, length), info) == 0;
}

static bool is_same(ms_ctx *cx, const char *a, const char *b)
{
    struct stat at_a, at_b;
    bool has_a = stat(a, &at_a) == 0, has_b = stat(b, &at_b) == 0;
    if (has_a || has_b)
        return has_a && has_b && S_ISREG(at_a.st_mode) && at_a.st_dev == at_b.st_dev &&
               at_a.st_ino == at_b.st_ino;
    const char *name_a, *name_b;
    return stat_folder(cx, a, &at_a, &name_a) && stat_folder(cx, b, &at_b, &name_b) &&
           at_a.st_dev == at_b.st_dev && at_a.st_ino == at_b.st_ino &&
           strcmp(name_a, name_b) == 0;
}

ms_status ms_output_check_differ(ms_ctx *cx, const char *a, const char *b)
{
    if (!is_path(a) || !is_path(b) || !is_same(cx, a, b))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s and %s are one file", a, b);
    return ms_hint(cx, "an output needs a file of its own");
}

ms_status ms_output_check_distinct(ms_ctx *cx, const char *const *paths, int num_paths)
{
    for (int i = 0; i < num_paths; i++)
        for (int j = 0; j < i; j++)
            MS_TRY(ms_output_check_differ(cx, paths[j], paths[i]));
    return MS_OK;
}

/* Flushes and closes the output; returns the errno of the first failure, 0 for none. */
static int finish(ms_output *out)
{
    bool failed_before = ferror(out->file) != 0;
    errno = 0;
    bool failed = fflush(out->file) != 0;
    int error = errno;
    if (out->path != NULL && fclose(out->file) != 0 && !failed) {
        failed = true;
        error = errno;
    }
    if (!failed && !failed_before)
        return 0;
    return error != 0 ? error : EIO;
}

ms_status ms_output_close(ms_ctx *cx, ms_output *out, ms_status status)
{
    bool has_result = status != MS_EIO && status != MS_EINPUT;
    if (has_result && out->json.need_comma) /* a JSON result was written */
        ms_jout_close(&out->json);
    int error = finish(out);
    bool keep = error == 0 && has_result;
    if (out->temporary != NULL && keep && rename(out->temporary, out->path) != 0) {
        error = errno;
        keep = false;
    }
    if (out->temporary != NULL && !keep)
        (void)remove(out->temporary);
    out->file = NULL;
    return error == 0 ? status : fail_write(cx, out->path, error);
}

bool ms_output_takes_colours(const char *path)
{
    const char *no_color = getenv("NO_COLOR");
    return path == NULL && (no_color == NULL || no_color[0] == '\0') &&
           isatty(STDOUT_FILENO);
}

/* COLUMNS of the environment; 0: not given, or no sensible width. */
static int columns_of_environment(void)
{
    const char *text = getenv("COLUMNS");
    double width;
    bool is_width = text != NULL && ms_parse_quantity(text, MS_UNIT_COUNT, &width) &&
                    width >= 1.0 && width <= MAX_COLUMNS && width == floor(width);
    return is_width ? (int)width : 0;
}

int ms_output_width(const char *path, int fallback)
{
    struct winsize size;
    int columns = path == NULL ? columns_of_environment() : 0;
    if (columns > 0)
        return columns;
    if (path != NULL || !isatty(STDOUT_FILENO) ||
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return fallback;
    return size.ws_col;
}

void ms_output_drop(ms_ctx *cx, ms_output *out)
{
    ms_ctx ignored = {.arena = cx->arena}; /* only the first error is reported */
    (void)ms_output_close(&ignored, out, MS_EINPUT);
}
