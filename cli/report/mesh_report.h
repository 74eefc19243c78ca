/* A mesh as text and as meshsim.mesh/1. */
#ifndef MS_CLI_REPORT_MESH_REPORT_H
#define MS_CLI_REPORT_MESH_REPORT_H

#include "base/json.h"
#include "cli/report/mesh_view.h"

/* Two to four lines: axes, strategy, cluster. */
void ms_mesh_print_head(FILE *out, ms_arena *arena, const ms_mesh_view *view);
/* Tables of the axes, what runs along each, the first groups. */
void ms_mesh_print_axes(FILE *out, ms_ctx *cx, const ms_mesh_view *view);
/* All groups of one axis. */
void ms_mesh_print_groups(FILE *out, ms_ctx *cx, const ms_mesh_view *view,
                          const ms_axis_view *axis);

/* Fields of meshsim.mesh/1 inside an open object. */
void ms_mesh_write_fields(ms_jout *json, ms_ctx *cx, const ms_mesh_view *view);

/* The rows of the zoo. */
void ms_zoo_print(FILE *out, ms_arena *arena);
void ms_zoo_write_json(FILE *out);

#endif
