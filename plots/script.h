/* A gnuplot script that stands alone: variables, then plots/style.gp, then the script of
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
extern const char *const ms_picture_format_names[]; /* "png" "svg" "pdf", NULL */

/* By the ending of a file name; -1: none of them. */
int ms_picture_format_find(const char *path);

typedef struct ms_script {
    const char *kind; /* "timeline": which script of plots/ */
    /* of the files: NAME.dat lies beside the script, and NAME.png will */
    const char *name;
    ms_picture_format format;
    double width, height; /* pixels */
    const char *title, *subtitle;
} ms_script;

/* Starts a script with what every one has. */
void ms_script_begin(FILE *out, const ms_script *script);
/* name = value. Texts are quoted, and what enhanced text of gnuplot would read as a
 * command is escaped. */
void ms_script_number(FILE *out, const char *name, double value);
void ms_script_text(FILE *out, const char *name, const char *value);
/* Copies the commands. MS_EIO: they are not where data files are. */
ms_status ms_script_end(ms_ctx *cx, FILE *out, const ms_script *script);

/* Text of a data file: in double quotes, with \n for line ends. */
void ms_data_text(FILE *out, const char *text);

#endif
