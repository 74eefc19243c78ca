/* Plot of a job's cluster: GPUs in the domains of each network level, with the bandwidth
 * of links, and the level that each mesh axis of a plan communicates over. Domains beyond
 * the room of the picture are folded into a count. */
#ifndef MS_PLOTS_TOPOLOGY_DATA_H
#define MS_PLOTS_TOPOLOGY_DATA_H

#include "plots/script.h"
#include "sim/step/links.h"
#include "sim/step/traffic.h"

/* A communication group of the plan. */
typedef struct ms_topology_axis {
    const char *name;
    ms_span span;
} ms_topology_axis;

typedef struct ms_topology_plot {
    ms_arena *arena; /* arena for captions */
    const ms_plan *plan;
    const ms_cluster *cluster; /* cluster as the job sees it */
    int num_levels;            /* levels up to the first that connects the whole job */
    long domain_gpus[MS_MAX_LEVELS]; /* GPUs of the job in a full domain of a level */
    int num_axes;
    ms_topology_axis axes[MS_NUM_SPANS];
} ms_topology_plot;

/* Makes the plot of a job of plan->gpus GPUs; the plan needs no model. */
ms_topology_plot ms_topology_plot_make(ms_arena *arena, const ms_plan *plan,
                                       const ms_cluster *cluster);
/* Number of the job's domains of a level. */
long ms_topology_domains(const ms_topology_plot *plot, int level);

/* ---- drawing: places are pixels from the top left corner ---- */

typedef struct ms_drawn_box {
    double x, y, width, height;
    unsigned rgb;
} ms_drawn_box;

typedef struct ms_drawn_line {
    double x, from_y, to_y;
    unsigned rgb;
} ms_drawn_line;

typedef struct ms_drawn_text {
    double x, y; /* middle of the text */
    const char *text;
    unsigned rgb;
} ms_drawn_text;

typedef struct ms_drawing {
    int num_boxes, num_lines, num_texts;
    int box_capacity, line_capacity, text_capacity;
    ms_drawn_box *boxes; /* later ones are drawn over earlier ones */
    ms_drawn_line *lines;
    ms_drawn_text *texts;
    double width, height;
} ms_drawing;

/* Draws the outermost domain at (x, y), at most `most_width` wide where that is possible.
 * Lists live in the arena. */
ms_drawing ms_topology_draw(const ms_topology_plot *plot, double x, double y,
                            double most_width);
/* The colour of a level. */
unsigned ms_topology_rgb(int level);

/* ---- files ---- */

void ms_topology_plot_write_data(FILE *out, const ms_topology_plot *plot);
ms_status ms_topology_plot_write_script(ms_ctx *cx, FILE *out,
                                        const ms_topology_plot *plot, const char *name,
                                        ms_picture_format format);
void ms_topology_plot_write_json(ms_jout *out, const ms_topology_plot *plot);
void ms_topology_plot_print(FILE *out, const ms_topology_plot *plot);

#endif
