/* meshsim mesh --layout: layouts without a mesh, and operations on them. */
#ifndef MS_CLI_REPORT_MESH_LAYOUT_H
#define MS_CLI_REPORT_MESH_LAYOUT_H

#include "cli/options/commands.h"

/* Evaluates an expression (ms_layout_parse) and writes the layout, size, cosize and
 * values, as text or as meshsim.layout/1. `first_fastest`: linear indices step through
 * the first mode fastest, as in CuTe; else the last. Errors: MS_EINPUT. */
ms_status ms_mesh_evaluate_layout(ms_ctx *cx, const ms_args *args, const char *expression,
                                  bool first_fastest);

#endif
