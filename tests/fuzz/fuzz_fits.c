/* Fuzzes lists of model constants that are to be fitted on published runs. In an
 * accepted list every constant is one that the files behind the runs have, and it can
 * be set. */
#include "sim/validate/pubrun_fit.h"
#include "sim/validate/pubrun_prices.h"
#include "tests/support/run_tables.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void load_runs(ms_ctx *cx, ms_pubruns *runs)
{
    if (ms_pubruns_load(cx, MS_SOURCE_DIR "/tests/data/runs_fit.csv", runs) != MS_OK) {
        ms_diag_print(cx, stderr);
        abort();
    }
    runs->num_runs = 3; /* three runs suffice to have constants, and are fast */
}

static void use(ms_pubruns_fit *fit)
{
    for (int i = 0; i < fit->num_constants; i++) {
        const ms_fit_constant *c = &fit->constants[i];
        if (!(c->low <= c->unknown && c->unknown <= c->high))
            abort();
        for (int t = 0; t < c->num_targets; t++)
            if (c->targets[t].value != NULL)
                *c->targets[t].value = c->high;
    }
    ms_pubruns_fit_close(fit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_pubruns runs;
    ms_pubruns_fit fit;
    ms_jdoc *doc;
    ms_jval root;
    load_runs(&cx, &runs);
    if (ms_json_parse(&cx, "fuzz", (const char *)data, size, &doc, &root) == MS_OK) {
        if (ms_pubruns_fit_read(&cx, root, &runs, &fit) == MS_OK)
            use(&fit);
        ms_json_close(doc);
    }
    ms_arena_close(cx.arena);
    return 0;
}
