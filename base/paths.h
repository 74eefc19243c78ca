/* Finds the data folders configs/ and plots/, installed or in the source tree. */
#ifndef MS_BASE_PATHS_H
#define MS_BASE_PATHS_H

#include "base/diag.h"

#include <stdbool.h>

/* The folder of the data files of a kind ("models", "clusters", "profiles", "stacks"):
 * the first that exists of <kind> in cx->configs, or in $MESHSIM_CONFIGS without it, and configs/<kind> in the parent of
 * the program folder, in its share/meshsim, in the program folder and in the source tree;
 * NULL if none. */
const char *ms_config_folder(ms_ctx *cx, const char *kind);
/* The value of MESHSIM_CONFIGS if it is no folder and so is ignored; otherwise NULL. */
const char *ms_config_ignored(void);

/* configs/<kind>/<name>.json; NULL if there is none, or `name` is no plain file name. */
const char *ms_config_file(ms_ctx *cx, const char *kind, const char *name);

/* Finds plots/<name> as ms_config_folder does, without MESHSIM_CONFIGS; else MS_EIO. */
ms_status ms_plot_script(ms_ctx *cx, const char *name, const char **path);

/* Sorted names of a kind's data files. MS_EIO if the folder cannot be read. */
ms_status ms_config_names(ms_ctx *cx, const char *kind, const char *const **names,
                          int *num_names);

/* Whether a word is a path, not a name: it contains '/', ends in ".json", or is "-". */
bool ms_config_is_path(const char *name_or_path);

/* Sets *path to `name_or_path` if it is a path (ms_config_is_path), else to the file of
 * the kind with this name, or whose alias it is in configs/names/aliases.json. MS_EINPUT:
 * "unknown <what> \"<name>\"", with a hint: names that contain it, or the nearest. */
ms_status ms_config_resolve(ms_ctx *cx, const char *kind, const char *what,
                            const char *name_or_path, const char **path);

/* The names for which a data file of a kind stands too, in configs/names/aliases.json.
 * Errors: as of reading that file. */
ms_status ms_config_aliases(ms_ctx *cx, const char *kind, const char *name,
                            const char *const **aliases, int *num_aliases);

/* The folder where huggingface_hub keeps repositories (its constants.py): $HF_HUB_CACHE,
 * $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or ~/.cache/huggingface/hub; NULL: none of
 * these variables and no HOME is set. */
const char *ms_hub_folder(ms_ctx *cx);

/* The text after the last '/' of a path. */
const char *ms_path_name(const char *path);

/* Resolves a path written in `file` (NULL: none): relative to the folder of `file` if it
 * exists there, otherwise unchanged. */
const char *ms_path_sibling(ms_ctx *cx, const char *file, const char *path);

#endif
