/* The comparison of axis orders as text and JSON. */
#ifndef MS_CLI_REPORT_MESH_ORDERS_PRINT_H
#define MS_CLI_REPORT_MESH_ORDERS_PRINT_H

#include "base/json.h"
#include "sim/search/mesh_orders.h"

void ms_mesh_orders_print(FILE *out, ms_arena *arena, const ms_mesh_orders *orders,
                          const ms_plan *plan, const ms_cluster *cluster);
/* Fields "orders" and "refused_orders" inside an open object. */
void ms_mesh_orders_write_fields(ms_jout *json, ms_arena *arena,
                                 const ms_mesh_orders *orders, const ms_plan *plan,
                                 const ms_cluster *cluster);

#endif
