/* Data files are searched relative to the program first: an installation may be moved. */
#include "base/paths.h"

#include "base/json.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MS_SOURCE_DIR
#define MS_SOURCE_DIR "."
#endif

#define PATH_BYTES 4096

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bool is_file(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* The folder of the running program; NULL if /proc does not provide it. */
static const char *program_folder(ms_ctx *cx)
{
    char buffer[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer - 1);
    if (length <= 0)
        return NULL;
    buffer[length] = '\0';
    char *slash = strrchr(buffer, '/');
    if (slash == NULL)
        return NULL;
    return ms_arena_strndup(cx->arena, buffer, (size_t)(slash - buffer));
}

/* The first existing path: `chosen` (NULL: none); `below` in the program's parent folder,
 * in share/meshsim there, in the program's folder, in the source tree. Or NULL. */
static const char *find_path(ms_ctx *cx, const char *chosen, const char *below,
                             bool (*exists)(const char *path))
{
    const char *program = program_folder(cx);
    const char *paths[5];
    int num_paths = 0;
    if (chosen != NULL)
        paths[num_paths++] = chosen;
    if (program != NULL) {
        paths[num_paths++] = ms_arena_printf(cx->arena, "%s/../%s", program, below);
        paths[num_paths++] =
            ms_arena_printf(cx->arena, "%s/../share/meshsim/%s", program, below);
        paths[num_paths++] = ms_arena_printf(cx->arena, "%s/%s", program, below);
    }
    paths[num_paths++] = ms_arena_printf(cx->arena, "%s/%s", MS_SOURCE_DIR, below);
    for (int i = 0; i < num_paths; i++)
        if (exists(paths[i]))
            return paths[i];
    return NULL;
}

const char *ms_config_ignored(void)
{
    const char *chosen = getenv("MESHSIM_CONFIGS");
    return chosen != NULL && chosen[0] != '\0' && !is_folder(chosen) ? chosen : NULL;
}

const char *ms_config_folder(ms_ctx *cx, const char *kind)
{
    const char *chosen = cx->configs != NULL ? cx->configs : getenv("MESHSIM_CONFIGS");
    if (chosen != NULL)
        chosen =
            chosen[0] == '\0' ? NULL : ms_arena_printf(cx->arena, "%s/%s", chosen, kind);
    return find_path(cx, chosen, ms_arena_printf(cx->arena, "configs/%s", kind),
                     is_folder);
}

ms_status ms_plot_script(ms_ctx *cx, const char *name, const char **path)
{
    const char *below = ms_arena_printf(cx->arena, "plots/%s", name);
    *path = find_path(cx, NULL, below, is_file);
    if (*path != NULL)
        return MS_OK;
    ms_fail(cx, MS_EIO, MS_NOWHERE, "no file %s was found", below);
    return ms_hint(cx, "\"make install\" puts it beside configs");
}

static bool is_plain_name(const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789.-_";
    return name[0] != '\0' && name[strspn(name, allowed)] == '\0';
}

const char *ms_config_file(ms_ctx *cx, const char *kind, const char *name)
{
    if (!is_plain_name(name))
        return NULL;
    const char *folder = ms_config_folder(cx, kind);
    if (folder == NULL)
        return NULL;
    const char *path = ms_arena_printf(cx->arena, "%s/%s.json", folder, name);
    return is_file(path) ? path : NULL;
}

static bool ends_in_json(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names of an open folder's data files without ".json"; returns how many. */
static int read_names(ms_ctx *cx, DIR *folder, const char ***names)
{
    int count = 0, capacity = 0;
    *names = NULL;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        const char *name = entry->d_name;
        if (name[0] == '.' || !ends_in_json(name) || !is_plain_name(name))
            continue;
        MS_MAKE_ROOM(cx->arena, *names, count, capacity, 32);
        (*names)[count++] = ms_arena_strndup(cx->arena, name, strlen(name) - 5);
    }
    return count;
}

ms_status ms_config_names(ms_ctx *cx, const char *kind, const char *const **names,
                          int *num_names)
{
    *names = NULL;
    *num_names = 0;
    const char *path = ms_config_folder(cx, kind);
    if (path == NULL) {
        ms_fail(cx, MS_EIO, MS_NOWHERE, "no folder configs/%s was found", kind);
        return ms_hint(cx, "set MESHSIM_CONFIGS to the folder that holds \"%s\"", kind);
    }
    DIR *folder = opendir(path);
    if (folder == NULL)
        return ms_fail(cx, MS_EIO, (ms_loc){.file = path}, "cannot be read: %s",
                       strerror(errno));
    const char **found;
    int count = read_names(cx, folder, &found);
    closedir(folder);
    if (count > 0)
        qsort(found, (size_t)count, sizeof *found, compare_names);
    *names = found;
    *num_names = count;
    return MS_OK;
}

static const char *join(ms_ctx *cx, const char *const *names, int num_names)
{
    const char *list = "";
    for (int i = 0; i < num_names; i++)
        list = ms_arena_printf(cx->arena, "%s%s%s", list, i == 0 ? "" : ", ", names[i]);
    return list;
}

#define MAX_OFFERED 5

/* Whether `name` contains `word`, whatever its case; `starts`: at the start of a word. */
static bool contains(const char *name, const char *word, bool starts)
{
    size_t length = strlen(word);
    for (const char *at = name; *at != '\0'; at++) {
        bool is_start = at == name || strchr("-._", at[-1]) != NULL;
        if ((is_start || !starts) && strncasecmp(at, word, length) == 0)
            return length > 0;
    }
    return false;
}

/* The first names that contain `word`, as "\"a\", \"b\" or \"c\""; "" if none does. */
static const char *names_with(ms_ctx *cx, const char *word, const char *const *names,
                              int num_names)
{
    const char *found[MAX_OFFERED];
    int num_found = 0;
    for (int starts = 1; starts >= 0 && num_found == 0; starts--)
        for (int i = 0; i < num_names && num_found < MAX_OFFERED; i++)
            if (contains(names[i], word, starts == 1))
                found[num_found++] = names[i];
    const char *list = "";
    for (int i = 0; i < num_found; i++) {
        const char *separator = i == 0 ? "" : i == num_found - 1 ? " or " : ", ";
        list = ms_arena_printf(cx->arena, "%s%s\"%s\"", list, separator, found[i]);
    }
    return list;
}

typedef struct alias_list {
    int num_aliases;
    const char **alias, **name;
} alias_list;

static ms_status read_aliases(ms_ctx *cx, ms_jval file, const char *kind, alias_list *out)
{
    static const ms_field kinds[] = {{.kind = MS_FIELD_ANY, .key = "clusters"},
                                     {.kind = MS_FIELD_ANY, .key = "models"},
                                     {.kind = MS_FIELD_ANY, .key = "stacks"},
                                     {0}};
    ms_jval list;
    MS_TRY(ms_json_read(cx, file, kinds, NULL));
    if (!ms_json_member(cx, file, kind, &list))
        return MS_OK;
    if (!ms_json_is_object(list))
        return ms_json_fail(cx, list, "an object must stand here");
    int num_aliases = ms_json_length(list);
    *out = (alias_list){num_aliases, MS_NEW_ARRAY(cx->arena, num_aliases, const char *),
                        MS_NEW_ARRAY(cx->arena, num_aliases, const char *)};
    for (int i = 0; i < num_aliases; i++) {
        ms_jval name = ms_json_entry(cx, list, i, &out->alias[i]);
        MS_TRY(ms_json_text(cx, name, &out->name[i]));
    }
    return MS_OK;
}

static ms_status load_aliases(ms_ctx *cx, const char *kind, alias_list *out)
{
    *out = (alias_list){0};
    const char *path = ms_config_file(cx, "names", "aliases");
    if (path == NULL)
        return MS_OK;
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_status status = read_aliases(cx, root, kind, out);
    ms_json_close(doc);
    return status;
}

ms_status ms_config_aliases(ms_ctx *cx, const char *kind, const char *name,
                            const char *const **aliases, int *num_aliases)
{
    alias_list all;
    MS_TRY(load_aliases(cx, kind, &all));
    const char **found = MS_NEW_ARRAY(cx->arena, all.num_aliases, const char *);
    *num_aliases = 0;
    for (int i = 0; i < all.num_aliases; i++)
        if (strcmp(all.name[i], name) == 0)
            found[(*num_aliases)++] = all.alias[i];
    *aliases = found;
    return MS_OK;
}

static ms_status fail_unknown(ms_ctx *cx, const char *kind, const char *what,
                              const char *name, const alias_list *aliases)
{
    const char *const *names;
    int num_names;
    MS_TRY(ms_config_names(cx, kind, &names, &num_names));
    int num_aliases = aliases->num_aliases;
    const char **known = MS_NEW_ARRAY(cx->arena, num_names + num_aliases, const char *);
    for (int i = 0; i < num_names; i++)
        known[i] = names[i];
    for (int i = 0; i < num_aliases; i++)
        known[num_names + i] = aliases->alias[i];
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "unknown %s \"%s\"", what, name);
    const char *containing = names_with(cx, name, names, num_names);
    const char *nearest = ms_nearest(name, known, num_names + num_aliases);
    if (containing[0] != '\0')
        ms_hint(cx, "did you mean %s?", containing);
    else if (nearest != NULL)
        ms_hint(cx, "did you mean \"%s\"?", nearest);
    else
        ms_hint(cx, "known: %s; or the path of a file", join(cx, names, num_names));
    return MS_EINPUT;
}

bool ms_config_is_path(const char *name_or_path)
{
    return strchr(name_or_path, '/') != NULL || ends_in_json(name_or_path) ||
           strcmp(name_or_path, "-") == 0;
}

ms_status ms_config_resolve(ms_ctx *cx, const char *kind, const char *what,
                            const char *name_or_path, const char **path)
{
    *path = ms_config_is_path(name_or_path) ? name_or_path
                                            : ms_config_file(cx, kind, name_or_path);
    if (*path != NULL)
        return MS_OK;
    alias_list aliases;
    MS_TRY(load_aliases(cx, kind, &aliases));
    for (int i = 0; i < aliases.num_aliases && *path == NULL; i++)
        if (strcmp(aliases.alias[i], name_or_path) == 0)
            *path = ms_config_file(cx, kind, aliases.name[i]);
    return *path != NULL ? MS_OK : fail_unknown(cx, kind, what, name_or_path, &aliases);
}

const char *ms_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

const char *ms_path_sibling(ms_ctx *cx, const char *file, const char *path)
{
    const char *slash = file == NULL ? NULL : strrchr(file, '/');
    if (slash == NULL || path[0] == '/')
        return path;
    const char *beside =
        ms_arena_printf(cx->arena, "%.*s%s", (int)(slash - file) + 1, file, path);
    return is_file(beside) ? beside : path;
}

/* ---- the cache of Hugging Face ---- */

/* An environment variable that is not empty; NULL: it is not set. */
static const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

const char *ms_hub_folder(ms_ctx *cx)
{
    const char *hub = variable("HF_HUB_CACHE"), *home = variable("HF_HOME");
    if (hub == NULL)
        hub = variable("HUGGINGFACE_HUB_CACHE");
    if (hub != NULL)
        return hub;
    if (home != NULL)
        return ms_arena_printf(cx->arena, "%s/hub", home);
    if ((home = variable("XDG_CACHE_HOME")) != NULL)
        return ms_arena_printf(cx->arena, "%s/huggingface/hub", home);
    home = variable("HOME");
    return home == NULL ? NULL
                        : ms_arena_printf(cx->arena, "%s/.cache/huggingface/hub", home);
}
