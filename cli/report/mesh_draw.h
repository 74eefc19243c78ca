/* A mesh drawn as a matrix of matrices: the last axis runs across, the one before it
 * down, the next across again, and so on; each nests the matrices so far with heavier
 * separators. Axes of size 1 are omitted. With all sizes 2, ranks are in Morton order.
 * Source: E. Z. Yang, "Visualizing a high dimensional mesh as a matrix of matrices"
 * (blog.ezyang.com, 2025). */
#ifndef MS_CLI_REPORT_MESH_DRAW_H
#define MS_CLI_REPORT_MESH_DRAW_H

#include "base/json.h"
#include "topo/mesh.h"

#include <stdio.h>

/* Most axes in one direction. */
#define MS_MAX_NESTING (MS_MAX_AXES / 2)

/* Axes in one direction, innermost first. */
typedef struct ms_grid_side {
    int num_axes;
    int axes[MS_MAX_NESTING];
    long length; /* number of columns (across) or of rows (down) */
} ms_grid_side;

typedef struct ms_grid {
    const ms_mesh *mesh;
    ms_grid_side across, down;
} ms_grid;

ms_grid ms_grid_make(const ms_mesh *mesh);
long ms_grid_rank(const ms_grid *grid, long row, long column);
/* Number of a side's axes that restart at coordinate 0 in column (or row) `place`: 0
 * within the innermost axis, 1 where the second axis steps, 2 where the third does. */
int ms_grid_level(const ms_grid *grid, const ms_grid_side *side, long place);
/* Coordinate of the side's i-th axis, from the innermost, at a row or column. */
long ms_grid_coordinate(const ms_grid *grid, const ms_grid_side *side, int i, long place);

typedef struct ms_drawing {
    ms_grid grid;
    long node_ranks;
    /* group of each rank on the coloured axis; NULL for no colours */
    const long *group_of_rank;
    const char *coloured; /* name of the coloured axis */
    long width;           /* columns of the terminal; wider meshes are cut into panels */
    /* part of a page, which has the styles (ms_mesh_svg_style): the SVG's class and the id
     * of the text that describes it; NULL: a file of its own */
    const char *page_class, *described_by;
} ms_drawing;

/* The node that holds the rank drawn at a row and column. */
long ms_drawing_node(const ms_drawing *drawing, long row, long column);
/* Whether a gap marks the end of a node before `column`: in some row the node changes. */
bool ms_drawing_node_ends(const ms_drawing *drawing, long column);

/* Number of colours for groups; further groups repeat them. */
#define MS_NUM_GROUP_COLOURS 12

/* Draws the mesh as text; rows of ranks hold only ranks and separators. */
void ms_mesh_draw(FILE *out, ms_arena *arena, const ms_drawing *drawing);

/* Writes {"across": [axes], "down": [axes], "rows": [[ranks]]}, axes outer to inner. */
void ms_grid_write_json(ms_jout *json, ms_arena *arena, const ms_grid *grid);

/* Most ranks of a readable picture, and of readable text; callers refuse more. */
#define MS_MAX_SVG_RANKS  65536
#define MS_MAX_TEXT_RANKS 1024

/* Styles of the drawing, as CSS rules that begin with their selector. */
extern const char *const ms_mesh_svg_styles[];

/* Draws the mesh as SVG: nodes as boxes, axes as brackets, a legend of the colours. */
void ms_mesh_draw_svg(FILE *out, ms_arena *arena, const ms_drawing *drawing);

#endif
