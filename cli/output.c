/* Every write error ends here: a full disk or a closed pipe must not look like
 * success. */
#include "cli/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ms_status fail_write(ms_ctx *cx, const char *path, int error)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "cannot write %s: %s",
                   path == NULL ? "standard output" : path, strerror(error));
}

ms_status ms_output_open(ms_ctx *cx, const char *path, ms_output *out)
{
    *out = (ms_output){.file = stdout};
    if (path == NULL || strcmp(path, "-") == 0)
        return MS_OK;
    out->path = path;
    struct stat info;
    bool exists = lstat(path, &info) == 0;
    bool in_place = exists && !S_ISREG(info.st_mode);
    if (exists && !in_place && access(path, W_OK) != 0)
        return fail_write(cx, path,
                          errno); /* renaming would overwrite a protected file */
    if (in_place) {
        out->file = fopen(path, "w");
    } else {
        out->temporary = ms_arena_printf(cx->arena, "%s.%ld.tmp", path, (long)getpid());
        out->file = fopen(out->temporary, "wx");
    }
    if (out->file == NULL)
        return fail_write(cx, path, errno);
    if (exists && !in_place)
        (void)fchmod(fileno(out->file),
                     info.st_mode & 07777); /* at worst the default mode */
    return MS_OK;
}

/* The errno of the first failure, 0 when all was written. */
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

static bool has_result(ms_status status)
{
    return status != MS_EIO && status != MS_EINPUT;
}

ms_status ms_output_close(ms_ctx *cx, ms_output *out, ms_status status)
{
    int error = finish(out);
    bool keep = error == 0 && has_result(status);
    if (out->temporary != NULL && keep && rename(out->temporary, out->path) != 0) {
        error = errno;
        keep = false;
    }
    if (out->temporary != NULL && !keep)
        (void)remove(out->temporary);
    out->file = NULL;
    return error == 0 ? status : fail_write(cx, out->path, error);
}

static void print_note(const char *kind, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void print_note(const char *kind, const char *format, va_list args)
{
    fprintf(stderr, "%s: ", kind);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
}

void ms_note(const ms_ctx *cx, const char *format, ...)
{
    if (cx->verbosity < 0)
        return;
    va_list args;
    va_start(args, format);
    print_note("note", format, args);
    va_end(args);
}

void ms_note_default(const ms_ctx *cx, const char *format, ...)
{
    if (cx->verbosity < 1)
        return;
    va_list args;
    va_start(args, format);
    print_note("default", format, args);
    va_end(args);
}
