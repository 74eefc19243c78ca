/* Fuzzes the option that slows a part of the machine: an accepted text names a rank or
 * a link, and a factor that times can be multiplied by. */
#include "sim/simulate/simulation.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_slowdown part;
    char *text = ms_arena_alloc(cx.arena, size + 1);
    if (size > 0)
        memcpy(text, data, size);
    if (ms_slowdown_read(&cx, text, &part) == MS_OK) {
        bool named = part.is_link ? part.link[0] != '\0' : part.rank >= 0;
        if (!named || !isfinite(part.factor) || part.factor <= 0.0)
            abort();
    } else if (cx.first == NULL) {
        abort();
    }
    ms_arena_close(cx.arena);
    return 0;
}
