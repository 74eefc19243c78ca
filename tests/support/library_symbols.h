/* Opens a library that a source of exec/cuda/vendor_*.c asks for, where it is installed,
 * and looks up every function that the source needs; their types are those of the
 * headers, by which the sources declare their tables. Included after such a source. */
#ifndef MS_TESTS_SUPPORT_LIBRARY_SYMBOLS_H
#define MS_TESTS_SUPPORT_LIBRARY_SYMBOLS_H

#include "exec/cuda/vendor_priv.h"
#include "tests/test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Opens a library by the loader's search, or from the toolkit's folder; NULL: neither. */
static inline void *open_installed(const char *name)
{
    char path[256];
    void *opened = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    snprintf(path, sizeof path, "/usr/local/cuda/lib64/%s", name);
    return opened != NULL ? opened : dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Fills `functions`; fails the test if the installed library lacks one. False: no library
 * is installed. */
static inline bool open_all_symbols(const ms_cuda_library *which, void *functions)
{
    void *opened = NULL;
    for (int i = 0; which->files[i] != NULL && opened == NULL; i++)
        opened = open_installed(which->files[i]);
    for (const ms_cuda_symbol *s = which->symbols; opened != NULL && s->name != NULL;
         s++) {
        void *address = dlsym(opened, s->name);
        if (address == NULL)
            fail_msg("the installed %s has no %s", which->what, s->name);
        memcpy((unsigned char *)functions + s->offset, &address, sizeof address);
    }
    return opened != NULL;
}

/* Defines the test that the installed library has all functions of `table_type`. */
#define MS_LIBRARY_TEST(table_type)                                                      \
    static void the_installed_library_has_all_functions(void **state)                    \
    {                                                                                    \
        (void)state;                                                                     \
        table_type installed;                                                            \
        if (!open_all_symbols(&library, &installed))                                     \
            skip();                                                                      \
    }

#endif
