/* Configuration files in JSON as settings with dotted keys: "zero_optimization.stage". */
#ifndef MS_COSTMODEL_PORT_JSON_SETTINGS_H
#define MS_COSTMODEL_PORT_JSON_SETTINGS_H

#include "costmodel/port/port.h"

/* Adds the members of a file's objects, in its order; null is like an absent key, and of a
 * list only the number of its items is kept. Keys that begin with "_" are remarks. A text
 * "auto" is unsettled: the program that runs decides. Everything lives in cx->arena.
 * MS_EINPUT, at line and column: syntax, no object, a key that stands twice, more than
 * 1 MiB or 1024 settings. */
ms_status ms_json_settings_read(ms_ctx *cx, const char *name, const char *text,
                                size_t length, ms_port_settings *out);

/* Writes settings as nested objects; those of one object stand together. The lines of
 * `comment` become the list "_comment", since JSON has no comments. */
void ms_json_settings_write(FILE *out, ms_arena *arena, const ms_texts *comment,
                            const ms_port_settings *settings);

#endif
