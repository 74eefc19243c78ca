/* Configuration files in YAML as settings with dotted keys: "parallelism.tp". */
#ifndef MS_COSTMODEL_PORT_YAML_H
#define MS_COSTMODEL_PORT_YAML_H

#include "costmodel/port/port.h"

/* Adds the scalars of a file's mappings, in its order; null is like an absent key, and of a
 * list only the number of its items is kept. Everything lives in cx->arena. MS_EINPUT, at
 * line and column: syntax (libyaml, YAML 1.1), aliases, several documents, keys that are
 * no scalars, more than 32 levels, or a key that stands twice. */
ms_status ms_yaml_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                       ms_port_settings *out);

/* Writes settings as nested mappings; those of one mapping stand together. */
void ms_yaml_write(FILE *out, ms_arena *arena, const ms_port_settings *settings);

#endif
