/* A self-contained gnuplot script: variables, then plots/style.gp, then the commands of
 * the plot (plots/timeline.gp, ...). */
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
    /* kind of plot, "timeline": its commands are in plots/timeline.gp */
    const char *kind;
    /* file name without ending: the data are in NAME.dat beside the script, and the
     * picture will be NAME.png */
    const char *name;
    ms_picture_format format;
    double width, height; /* size of the picture in pixels */
    const char *title, *subtitle;
} ms_script;

/* Writes the head of a script: name, format, size and titles. */
void ms_script_begin(FILE *out, const ms_script *script);
/* Write "name = value". Texts are quoted, and characters that gnuplot's enhanced text
 * would interpret are escaped. */
void ms_script_number(FILE *out, const char *name, double value);
void ms_script_text(FILE *out, const char *name, const char *value);
/* Appends style.gp and the commands of the plot. MS_EIO if they are not found or cannot
 * be read. */
ms_status ms_script_end(ms_ctx *cx, FILE *out, const ms_script *script);

/* Writes a text of a data file in double quotes, with \n for line ends. */
void ms_data_text(FILE *out, const char *text);

#endif
