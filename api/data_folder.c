/* The data of an installed library lies beside it, wherever it was moved. */
/* dladdr, NOLINTNEXTLINE(cert-dcl37-c,readability-identifier-naming) */
#define _GNU_SOURCE 1
#include "api/context.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folder `below` of the one that the path of a library names; NULL: there is none. */
static char *folder_beside(const char *library, const char *below)
{
    const char *slash = strrchr(library, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - library) + 1;
    char *path = malloc(length + strlen(below) + 1);
    struct stat info;
    if (path == NULL)
        return NULL;
    memcpy(path, library, length);
    memcpy(path + length, below, strlen(below) + 1);
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return path;
    free(path);
    return NULL;
}

char *ms_api_data_folder(void)
{
    /* lib/libmeshsim.so, and lib/x86_64-linux-gnu/libmeshsim.so */
    static const char *const below[] = {"../share/meshsim/configs",
                                        "../../share/meshsim/configs"};
    Dl_info self;
    const char *chosen = getenv("MESHSIM_CONFIGS");
    if ((chosen != NULL && chosen[0] != '\0') ||
        dladdr((const void *)below, &self) == 0 || self.dli_fname == NULL)
        return NULL;
    char *found = NULL;
    for (size_t i = 0; i < sizeof below / sizeof *below && found == NULL; i++)
        found = folder_beside(self.dli_fname, below[i]);
    return found;
}
