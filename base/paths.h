/* Where the data files are: configs/ next to the program, in the source tree, or
 * installed. */
#ifndef MS_BASE_PATHS_H
#define MS_BASE_PATHS_H

#include "base/diag.h"

#include <stdbool.h>

/* The folder configs/<kind> ("models", "clusters", "profiles", "stacks"): the first that
 * exists of $MESHSIM_CONFIGS/<kind>, <program folder>/../configs/<kind>, <program
 * folder>/../share/meshsim/configs/<kind>, the source tree the program was built in. NULL
 * when none exists. */
const char *ms_config_folder(ms_ctx *cx, const char *kind);
/* MESHSIM_CONFIGS where it is no folder, so that the others are taken; NULL: it is one,
 * or is not set. */
const char *ms_config_ignored(void);

/* The file configs/<kind>/<name>.json if it exists, otherwise NULL. `name` with other
 * characters than letters, digits, '.', '-', '_' is refused (NULL). */
const char *ms_config_file(ms_ctx *cx, const char *kind, const char *name);

/* The gnuplot script plots/<name>, looked for in the same places but for
 * $MESHSIM_CONFIGS. MS_EIO when it is nowhere. */
ms_status ms_plot_script(ms_ctx *cx, const char *name, const char **path);

/* Names (without ".json") of all files of a kind, sorted. */
ms_status ms_config_names(ms_ctx *cx, const char *kind, const char *const **names,
                          int *num_names);

/* Whether a command takes it as a path: a word with '/', one that ends in ".json", or
 * "-". */
bool ms_config_is_path(const char *name_or_path);

/* Resolves a name or path as commands take it: a word with '/' or ending in ".json" is a
 * path and returned as it is; otherwise the file of that name; otherwise the file that
 * configs/names/aliases.json has for it under the key `kind`; otherwise an MS_EINPUT
 * error "unknown <what> \"<name>\"" with up to five names that contain the word as hint,
 * or the nearest one. Errors of the list of aliases are passed on. */
ms_status ms_config_resolve(ms_ctx *cx, const char *kind, const char *what,
                            const char *name_or_path, const char **path);

/* The last part of a path. */
const char *ms_path_name(const char *path);

/* A path as it stands in `file` (NULL: in none). A relative one is that of a file beside
 * `file` where there is one, else as it stands: from the working folder. */
const char *ms_path_beside(ms_ctx *cx, const char *file, const char *path);

#endif
