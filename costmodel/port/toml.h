/* Configuration files in TOML as settings with dotted keys: "training.seq_len". */
#ifndef MS_COSTMODEL_PORT_TOML_H
#define MS_COSTMODEL_PORT_TOML_H

#include "costmodel/port/port.h"

/* Adds the settings of a file, in its order: texts without quotes, arrays as they are
 * written. Grammar: toml.io, v1.0.0, without dates, arrays of tables and texts of several
 * lines, which are refused. Everything lives in cx->arena. MS_EINPUT, at line and column:
 * syntax, or a key that stands twice. */
ms_status ms_toml_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                       ms_port_settings *out);

/* Writes settings in sections; a value that is quoted is a text. */
void ms_toml_write(FILE *out, ms_arena *arena, const ms_port_settings *settings);

#endif
