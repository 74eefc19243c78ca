/* A mesh drawn as a matrix of matrices: the last axis runs across, the one before it
 * down, the next across again, ...: every second axis nests the matrices so far side by
 * side, the others stack them, with heavier separators each time. Axes of size 1 are left
 * out. With all sizes 2 the ranks are in Morton order. Source: E. Z. Yang, "Visualizing a
 * high dimensional mesh as a matrix of matrices" (blog.ezyang.com, 2025). */
#ifndef MS_CLI_REPORT_MESH_DRAW_H
#define MS_CLI_REPORT_MESH_DRAW_H

#include "base/json.h"
#include "topo/mesh.h"

#include <stdio.h>

/* How often axes of one direction nest. */
#define MS_MAX_NESTING (MS_MAX_AXES / 2)

/* Axes of one direction, innermost first. */
typedef struct ms_grid_side {
    int num_axes;
    int axes[MS_MAX_NESTING];
    long length; /* columns or rows */
} ms_grid_side;

typedef struct ms_grid {
    const ms_mesh *mesh;
    ms_grid_side across, down;
} ms_grid;

ms_grid ms_grid_make(const ms_mesh *mesh);
long ms_grid_rank(const ms_grid *grid, long row, long column);
/* How many axes of the side begin anew at this place besides the innermost: 0 inside, 1
 * where the second axis steps, ... */
int ms_grid_level(const ms_grid *grid, const ms_grid_side *side, long place);
/* Coordinate of the side's i-th axis at a place. */
long ms_grid_coordinate(const ms_grid *grid, const ms_grid_side *side, int i, long place);

typedef struct ms_drawing {
    ms_grid grid;
    long node_ranks;
    /* which group of the coloured axis a rank is in; NULL: no colours */
    const long *group_of_rank;
    const char *coloured; /* name of that axis */
    long width;           /* columns of the terminal; wider meshes are cut into panels */
} ms_drawing;

/* Colours of groups, repeated when there are more. */
#define MS_NUM_GROUP_COLOURS 12

/* Rows of ranks hold ranks and separators only. */
void ms_mesh_draw(FILE *out, ms_arena *arena, const ms_drawing *drawing);

/* {"across": [axes], "down": [axes], "rows": [[ranks]]}, axes outer to inner. */
void ms_grid_write_json(ms_jout *json, ms_arena *arena, const ms_grid *grid);

/* Ranks that a picture, and text, still show readably; the callers refuse more. */
#define MS_MAX_SVG_RANKS  65536
#define MS_MAX_TEXT_RANKS 1024

/* The same as SVG, nodes as boxes, axes as brackets, with a legend of the colours. */
void ms_mesh_draw_svg(FILE *out, ms_arena *arena, const ms_drawing *drawing);

#endif
