/* The files of a plot: the picture, and the data and script that it is made from. */
#ifndef MS_CLI_CMD_PLOT_FILES_H
#define MS_CLI_CMD_PLOT_FILES_H

#include "cli/options/output.h"
#include "plots/script.h"

typedef struct ms_plot_target {
    const char *path; /* path of the picture; "-": standard output */
    ms_picture_format format;
    bool keep;                 /* data and script are kept in the folder of the picture */
    const char *data, *script; /* paths of the data file and the gnuplot script */
    const char *name;          /* file name of all three files without ending */
} ms_plot_target;

/* Fills `out` from -o FILE (`path`; NULL: KIND.png), --format (-1: by the ending of FILE)
 * and --keep. MS_EINPUT if the ending is no format. */
ms_status ms_plot_target_read(ms_ctx *cx, const char *kind, const char *path, int format,
                              bool keep, ms_plot_target *out);

/* A plot and the functions that write its data file and its gnuplot script. */
typedef struct ms_plot_writer {
    const void *plot;
    void (*write_data)(FILE *out, const void *plot);
    ms_status (*write_script)(ms_ctx *cx, FILE *out, const void *plot, const char *name,
                              ms_picture_format format);
} ms_plot_writer;

/* Defines functions for a ms_plot_writer of TYPE: they call TYPE_write_data and
 * TYPE_write_script. MS_PLOT_WRITER is the writer of a `plot`, a pointer to TYPE. */
#define MS_PLOT_WRITER_FUNCTIONS(type)                                                   \
    static void type##_data_of(FILE *out, const void *plot)                              \
    {                                                                                    \
        type##_write_data(out, plot);                                                    \
    }                                                                                    \
    static ms_status type##_script_of(ms_ctx *cx, FILE *out, const void *plot,           \
                                      const char *name, ms_picture_format format)        \
    {                                                                                    \
        return type##_write_script(cx, out, plot, name, format);                         \
    }
#define MS_PLOT_WRITER(type, plot)                                                       \
    {                                                                                    \
        (plot), type##_data_of, type##_script_of                                         \
    }

/* Renders the plot into `picture`, which must be open and is closed in any case. Without
 * gnuplot, `*rendered` is false, data and script are kept, and a note says how to render
 * them; if the picture goes to standard output, MS_EIO instead. If gnuplot fails: MS_EIO,
 * and no picture. */
ms_status ms_plot_render(ms_ctx *cx, const ms_plot_target *target,
                         const ms_plot_writer *writer, ms_output *picture,
                         bool *rendered);

#endif
