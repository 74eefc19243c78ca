/* Fuzzes lists of constants that own runs correct. An accepted list has patterns of
 * figures, positive widths and limits that ascend. */
#include "sim/validate/own_runs.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const ms_own_list *list)
{
    if (list->num_constants < 1 || list->num_constants > MS_MAX_OWN_CONSTANTS)
        abort();
    for (int m = 0; m < MS_NUM_MEASUREMENTS; m++)
        if (!(list->error[m] > 0.0))
            abort();
    for (int i = 0; i < list->num_constants; i++) {
        const ms_own_constant *c = &list->constants[i];
        if (c->num_patterns < 1 || !(c->width > 0.0) || c->low >= c->high)
            abort();
        for (int p = 0; p < c->num_patterns; p++)
            if (strchr(c->patterns[p], ' ') == NULL)
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_own_list list;
    ms_jdoc *doc;
    ms_jval root;
    if (ms_json_parse(&cx, "fuzz", (const char *)data, size, &doc, &root) == MS_OK) {
        if (ms_own_list_read(&cx, root, &list) == MS_OK)
            check(&list);
        ms_json_close(doc);
    }
    ms_arena_close(cx.arena);
    return 0;
}
