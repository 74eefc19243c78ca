/* meshsim mesh --layout: layouts by themselves, and operations on them. */
#ifndef MS_CLI_REPORT_MESH_LAYOUT_H
#define MS_CLI_REPORT_MESH_LAYOUT_H

#include "cli/options/commands.h"

/* Evaluates an expression (ms_layout_parse) and writes the layout, its size, its cosize
 * and its values, as text or as meshsim.layout/1. `first_fastest`: linear indices step
 * through the first mode fastest, as in CuTe; otherwise through the last. Errors:
 * MS_EINPUT. */
ms_status ms_mesh_evaluate_layout(ms_ctx *cx, const ms_args *args, const char *expression,
                                  bool first_fastest);

#endif
