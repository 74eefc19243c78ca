/* Finds the data files: configs/ and plots/ next to the program, in an installation, or
 * in the source tree. */
#ifndef MS_BASE_PATHS_H
#define MS_BASE_PATHS_H

#include "base/diag.h"

#include <stdbool.h>

/* The folder of the data files of a kind ("models", "clusters", "profiles", "stacks"):
 * the first that exists of $MESHSIM_CONFIGS/<kind>, <program folder>/../configs/<kind>,
 * <program folder>/../share/meshsim/configs/<kind>, <program folder>/configs/<kind>,
 * and configs/<kind> of the source tree from which the program was built. NULL if none
 * exists. */
const char *ms_config_folder(ms_ctx *cx, const char *kind);
/* The value of MESHSIM_CONFIGS if it names no folder and is therefore ignored; NULL if
 * it is a folder or is not set. */
const char *ms_config_ignored(void);

/* The path of configs/<kind>/<name>.json; NULL if there is no such file, or if `name`
 * has characters other than letters, digits, '.', '-' and '_'. */
const char *ms_config_file(ms_ctx *cx, const char *kind, const char *name);

/* Finds the gnuplot script plots/<name> in the same places, $MESHSIM_CONFIGS excepted.
 * MS_EIO if it is in none. */
ms_status ms_plot_script(ms_ctx *cx, const char *name, const char **path);

/* The names (without ".json") of all data files of a kind, sorted. MS_EIO if the folder
 * is missing or cannot be read. */
ms_status ms_config_names(ms_ctx *cx, const char *kind, const char *const **names,
                          int *num_names);

/* Whether commands take a word as a path rather than a name: it contains '/', ends in
 * ".json", or is "-". */
bool ms_config_is_path(const char *name_or_path);

/* Resolves a name or path as commands take it: a word with '/' or ending in ".json" is
 * a path and returned unchanged; any other word is the name of a file of the kind, or an
 * alias of one in configs/names/aliases.json. Otherwise MS_EINPUT: "unknown <what>
 * \"<name>\"", with a hint of up to five names that contain the word, or the nearest one.
 * Errors of the list of aliases are passed on. */
ms_status ms_config_resolve(ms_ctx *cx, const char *kind, const char *what,
                            const char *name_or_path, const char **path);

/* The text after the last '/' of a path. */
const char *ms_path_name(const char *path);

/* Resolves a path that is written in `file` (NULL: in no file): a relative path is
 * taken relative to the folder of `file` if a file exists there, and otherwise returned
 * unchanged, relative to the working folder. */
const char *ms_path_sibling(ms_ctx *cx, const char *file, const char *path);

#endif
