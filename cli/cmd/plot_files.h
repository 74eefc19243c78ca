/* The files of a plot: the picture, and the data and script that it is made from. */
#ifndef MS_CLI_CMD_PLOT_FILES_H
#define MS_CLI_CMD_PLOT_FILES_H

#include "cli/options/output.h"
#include "plots/script.h"

/* Where a picture goes. */
typedef struct ms_plot_target {
    const char *path; /* "-": standard output */
    ms_picture_format format;
    bool keep;                 /* data and script stay beside the picture */
    const char *data, *script; /* where they stay */
    const char *name;          /* of both and of the picture, without folder and ending */
} ms_plot_target;

/* From -o FILE (NULL: KIND.png), --format (-1: by the ending of FILE) and --keep.
 * MS_EINPUT: an ending that is no format. */
ms_status ms_plot_target_read(ms_ctx *cx, const char *kind, const char *path, int format,
                              bool keep, ms_plot_target *out);

/* What a kind of plot writes. */
typedef struct ms_plot_writer {
    const void *plot;
    void (*write_data)(FILE *out, const void *plot);
    ms_status (*write_script)(ms_ctx *cx, FILE *out, const void *plot, const char *name,
                              ms_picture_format format);
} ms_plot_writer;

/* Renders into `picture`, which is open and is closed in any case. Without gnuplot the
 * data and the script stay, a note says how to render them, and `*rendered` is false; for
 * standard output that is MS_EIO. When gnuplot fails (MS_EIO) there is no picture. */
ms_status ms_plot_render(ms_ctx *cx, const ms_plot_target *target,
                         const ms_plot_writer *writer, ms_output *picture,
                         bool *rendered);

#endif
