/* Functions of the format of torchtitan that rows of its table name. */
#ifndef MS_COSTMODEL_PORT_TORCHTITAN_PRIV_H
#define MS_COSTMODEL_PORT_TORCHTITAN_PRIV_H

#include "costmodel/port/port_priv.h"

/* Schedule and stages, written and read. */
void ms_torchtitan_put_schedule(ms_port *port);
ms_status ms_torchtitan_take_schedule(ms_port *port);
extern const char *const ms_torchtitan_schedule_keys[];
extern const int ms_torchtitan_schedule_choices[];
/* Whether the number of virtual stages follows from no number of layers per stage. */
bool ms_torchtitan_needs_layers(const ms_plan *plan, const ms_model *model);

#endif
