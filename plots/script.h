/* Folder plots: pictures of results as gnuplot scripts and data, without predictions.
 *
 * Writes self-contained gnuplot scripts: variables, plots/style.gp, commands of the plot.
 * A plot TYPE has TYPE_write_data, TYPE_write_script (`name`: its files without ending;
 * MS_EIO if commands cannot be read), TYPE_write_json (into an object) and TYPE_print. */
#ifndef MS_PLOTS_SCRIPT_H
#define MS_PLOTS_SCRIPT_H

#include "base/diag.h"

#include <stdio.h>

typedef enum ms_picture_format {
    MS_PICTURE_PNG,
    MS_PICTURE_SVG,
    MS_PICTURE_PDF,
    MS_NUM_PICTURE_FORMATS
} ms_picture_format;
/* names of ms_picture_format: "png", "svg", "pdf", NULL-ended */
extern const char *const ms_picture_format_names[];

/* The ms_picture_format of a file name by its ending; -1: none of them. */
int ms_picture_format_find(const char *path);

typedef struct ms_script {
    const char *kind; /* kind of plot: "timeline" has its commands in plots/timeline.gp */
    /* file name without ending of script, data (NAME.dat) and picture */
    const char *name;
    ms_picture_format format;
    double width, height; /* size of the picture in pixels */
    struct {
        double left, right, top, bottom;
    } margins; /* margins around the axes in pixels */
    const char *title, *subtitle;
} ms_script;

/* Ends of a logarithmic axis around two values: as they are, or wide enough for two of the
 * labels at 1, 2 and 5 of each decade. */
typedef struct ms_logarithmic_range {
    double low, high;
} ms_logarithmic_range;
ms_logarithmic_range ms_logarithmic_range_of(double low, double high);

/* Width of title or subtitle, whichever is longer, in pixels. */
double ms_script_title_width(const char *title, const char *subtitle);
/* Writes the head of a script: name, format, size and titles. */
void ms_script_begin(FILE *out, const ms_script *script);
/* Writes "name = value" into a script; ms_script_text quotes and escapes the value. */
void ms_script_number(FILE *out, const char *name, double value);
void ms_script_text(FILE *out, const char *name, const char *value);
/* Appends style.gp and the plot's commands. MS_EIO if they cannot be read. */
ms_status ms_script_end(ms_ctx *cx, FILE *out, const ms_script *script);

/* Writes a quoted text of a data file. */
void ms_data_text(FILE *out, const char *text);

#endif
