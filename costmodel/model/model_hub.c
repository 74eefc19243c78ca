/* Names of the hub are looked up among the shipped models first, so that the answer does
 * not depend on what a machine has cached. */
#include "costmodel/model/model_hub.h"

#include "base/paths.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define MAX_COMMIT_LENGTH 64 /* 40 digits of SHA-1, or 64 of SHA-256 */

/* Length of a part of a hub name: it starts with a letter, digit or '_'. */
static size_t part_length(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                  "0123456789_.-";
    return *text == '.' || *text == '-' ? 0 : strspn(text, allowed);
}

bool ms_model_is_hub_name(const char *word)
{
    size_t owner = part_length(word);
    if (owner == 0 || word[owner] != '/')
        return false;
    const char *name = word + owner + 1;
    size_t length = part_length(name);
    struct stat info;
    return length > 0 && name[length] == '\0' &&
           (length < 5 || strcmp(name + length - 5, ".json") != 0) &&
           stat(word, &info) != 0;
}

/* ---- shipped models ---- */

/* The model in whose list of hub names `name` stands; "": none. */
static ms_status find_listed(ms_ctx *cx, ms_jval models, const char *name,
                             const char **out)
{
    int num_models = ms_json_is_object(models) ? ms_json_length(models) : 0;
    for (int i = 0; i < num_models; i++) {
        const char *model;
        ms_jval list = ms_json_entry(cx, models, i, &model);
        if (!ms_json_is_array(list))
            return ms_json_fail(cx, list, "a list of names must stand here");
        for (int k = 0; k < ms_json_length(list); k++) {
            const char *listed = "";
            MS_TRY(ms_json_text(cx, ms_json_element(cx, list, k), &listed));
            if (strcasecmp(listed, name) == 0)
                *out = model;
        }
    }
    return MS_OK;
}

/* Sets *path to the file of the shipped model; NULL: none has this name. */
static ms_status find_shipped(ms_ctx *cx, const char *name, const char **path)
{
    *path = NULL;
    const char *file = ms_config_file(cx, "names", "hub");
    if (file == NULL)
        return MS_OK;
    ms_jdoc *doc = NULL;
    ms_jval root, models;
    MS_TRY(ms_json_load(cx, file, &doc, &root));
    const char *model = "";
    ms_status status = MS_OK;
    if (ms_json_member(cx, root, "models", &models))
        status = find_listed(cx, models, name, &model);
    ms_json_close(doc);
    *path = ms_config_file(cx, "models", model);
    return status;
}

/* ---- the local cache ---- */

static bool exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}

/* The folder of a repository: "FOLDER/models--owner--name". */
static const char *repository(ms_ctx *cx, const char *folder, const char *name)
{
    const char *slash = strchr(name, '/');
    return ms_arena_printf(cx->arena, "%s/models--%.*s--%s", folder, (int)(slash - name),
                           name, slash + 1);
}

/* Reads the commit of branch main into a text of MAX_COMMIT_LENGTH. */
static ms_status read_commit(ms_ctx *cx, const char *path, char *commit)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        ms_fail(cx, MS_EINPUT, (ms_loc){.file = path},
                "cannot be read, so the commit of branch main is not known");
        return ms_hint(cx, "name the config.json below snapshots/ by its path");
    }
    size_t length = fread(commit, 1, MAX_COMMIT_LENGTH, file);
    commit[length] = '\0';
    bool whole = length < MAX_COMMIT_LENGTH || fgetc(file) == EOF;
    fclose(file);
    commit[strcspn(commit, " \r\n")] = '\0';
    if (!whole || commit[0] == '\0' ||
        strspn(commit, "0123456789abcdef") != strlen(commit))
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = path}, "this is no commit");
    return MS_OK;
}

static ms_status fail_unknown(ms_ctx *cx, const char *name, bool shipped,
                              const char *folder)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "\"%s\" is no file%s and is not in Hugging Face's cache%s%s", name,
            shipped ? ", no hub name of a shipped model" : "", folder == NULL ? "" : " ",
            folder == NULL ? "" : folder);
    return ms_hint(cx,
                   "nothing is downloaded: \"hf download %s config.json\" puts it there; "
                   "\"meshsim model\" lists the shipped models",
                   name);
}

ms_status ms_model_hub_find(ms_ctx *cx, const char *name, bool shipped, const char **path)
{
    char commit[MAX_COMMIT_LENGTH + 1];
    *path = NULL;
    if (shipped)
        MS_TRY(find_shipped(cx, name, path));
    if (*path != NULL)
        return MS_OK;
    const char *folder = ms_hub_folder(cx);
    const char *cached = folder == NULL ? NULL : repository(cx, folder, name);
    if (cached == NULL || !exists(cached))
        return fail_unknown(cx, name, shipped, folder);
    MS_TRY(read_commit(cx, ms_arena_printf(cx->arena, "%s/refs/main", cached), commit));
    *path = ms_arena_printf(cx->arena, "%s/snapshots/%s/config.json", cached, commit);
    if (exists(*path))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, (ms_loc){.file = *path},
            "this file of \"%s\" is not in the cache", name);
    return ms_hint(cx, "\"hf download %s config.json\" puts it there", name);
}
