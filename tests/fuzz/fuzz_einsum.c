/* Fuzzes the parser of einsum texts: an accepted einsum, written as text and parsed
 * again, is the same einsum. */
#include "costmodel/tensor/einsum.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    char *text = ms_arena_strndup(cx.arena, (const char *)data, size);
    ms_einsum einsum, again;
    if (ms_einsum_parse(&cx, text, &einsum) == MS_OK) {
        const char *written = ms_einsum_text(cx.arena, &einsum);
        if (ms_einsum_parse(&cx, written, &again) != MS_OK ||
            memcmp(&einsum, &again, sizeof einsum) != 0)
            abort();
        for (int i = 0; i < einsum.num_inputs; i++) {
            ms_einsum gradient = ms_einsum_gradient(&einsum, i);
            ms_einsum back = ms_einsum_gradient(&gradient, i);
            if (strcmp(ms_einsum_text(cx.arena, &back), written) != 0)
                abort();
        }
    } else if (cx.num_errors == 0) {
        abort();
    }
    ms_arena_close(cx.arena);
    return 0;
}
