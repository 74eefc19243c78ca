/* Fuzzes files of the distribution of prediction errors. With an accepted file, the
 * interval of every class contains the predicted time, and the file can be written
 * again. */
#include "costmodel/calibrate/error_spread.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const ms_error_spread *spread, const char *stack, long gpus,
                const char *left_out)
{
    ms_error_interval got =
        ms_error_spread_interval(spread, &(ms_error_class){stack, gpus, left_out});
    if (got.low_frac > 1.0 || got.high_frac < 1.0)
        abort();
    if (isinf(got.low_frac) || isinf(got.high_frac))
        abort();
}

static void use(const ms_error_spread *spread)
{
    ask(spread, "another", 1, NULL);
    for (int s = 0; s < spread->num_sources && s < 20; s++) {
        const ms_error_source *source = &spread->sources[s];
        for (int i = 0; i < source->num_cells && i < 20; i++) {
            const ms_error_cell *cell = &source->cells[i];
            ask(spread, cell->stack, cell->most_gpus, NULL);
            ask(spread, cell->stack, cell->most_gpus, source->name);
            if (!ms_error_spread_has(spread, source->name, cell->runs[0]))
                abort();
        }
    }
    FILE *file = fopen("/dev/null", "w");
    if (file == NULL)
        abort();
    ms_jout out = ms_jout_open(file);
    ms_error_spread_write_json(&out, spread);
    ms_jout_close(&out);
    fclose(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_error_spread spread;
    ms_jdoc *doc;
    ms_jval root;
    if (ms_json_parse(&cx, "fuzz", (const char *)data, size, &doc, &root) == MS_OK) {
        if (ms_error_spread_read(&cx, root, &spread) == MS_OK)
            use(&spread);
        ms_json_close(doc);
    }
    ms_arena_close(cx.arena);
    return 0;
}
