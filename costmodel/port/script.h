/* Launch scripts: the command that trains, its launcher, its settings. */
#ifndef MS_COSTMODEL_PORT_SCRIPT_H
#define MS_COSTMODEL_PORT_SCRIPT_H

#include "costmodel/port/port_priv.h"

/* How a program takes its settings. */
typedef struct ms_script_style {
    /* which words are settings "KEY=VALUE"; NULL: none, all are "--key value" */
    bool (*is_setting)(const char *word);
    const char *file_key; /* key of a word like "base.yml" besides such words; or NULL */
    const char *example;  /* in the hint for texts without settings */
} ms_script_style;

/* Reads a launch script, or arguments alone: settings of the program, and those of its
 * launcher with "launcher" before the key. Everything lives in cx->arena. MS_EINPUT: syntax
 * (costmodel/port/shell.h), or a text without settings. */
ms_status ms_script_read(ms_port *port, const char *name, const char *text, size_t length,
                         const ms_script_style *style);
/* The first of some keys of launchers that the file has, as a number; 0: none. */
ms_status ms_script_take_first(ms_port *port, const char *const *keys, long *out);
/* The number of processes that the launcher starts; 0: the file does not say. */
ms_status ms_script_ranks(ms_port *port, long *ranks);

#endif
