/* An axis of a grid of searches: a choice with the values that it has in turn. */
#ifndef MS_CLI_OPTIONS_GRID_AXIS_H
#define MS_CLI_OPTIONS_GRID_AXIS_H

#include "sim/search/space.h"

#define MS_MAX_GRID_VALUES 16

typedef struct ms_grid_axis {
    const char *option; /* "--x", for messages */
    const char *name;   /* the choice as the user called it: "tp", "gpus" */
    ms_choice choice;
    bool of_job; /* GPUs, sequence length or batch, which a search does not choose */
    const char *values_text; /* values as given; NULL: none were given */
    int num;
    long values[MS_MAX_GRID_VALUES];
    const char *texts[MS_MAX_GRID_VALUES]; /* the values as limits write them */
} ms_grid_axis;

/* Reads the name of "tp=1,2,4", "tp=1..8", "gpus=64..512" or "schedule"; the values too
 * if the axis is of the job. MS_EINPUT: an unknown name, or values that are wrong. */
ms_status ms_grid_axis_read(ms_ctx *cx, const char *option, const char *text,
                            ms_grid_axis *out);
/* Reads the values of an axis that is not of the job, or without any takes all that the
 * space has. MS_EINPUT: values outside the space, none, or more than
 * MS_MAX_GRID_VALUES. */
ms_status ms_grid_axis_fill(ms_ctx *cx, const ms_space *space, const ms_model *model,
                            ms_grid_axis *axis);

#endif
