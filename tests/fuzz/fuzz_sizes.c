/* Fuzzes lists of numbers of GPUs, as the user types them: accepted lists ascend
 * within the limits, a refused one has a message. */
#include "sim/planning/sizes.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const long most = 1 << 24;
    ms_ctx cx = {.arena = ms_arena_open()};
    const char *text = ms_arena_strndup(cx.arena, (const char *)data, size);
    ms_sizes sizes;
    if (ms_sizes_parse(&cx, "--gpus", text, most, &sizes) == MS_OK) {
        require(sizes.num >= 1 && sizes.num <= MS_MAX_SIZES);
        for (int i = 0; i < sizes.num; i++)
            require(sizes.sizes[i] >= 1 && sizes.sizes[i] <= most &&
                    (i == 0 || sizes.sizes[i] > sizes.sizes[i - 1]));
    } else {
        require(cx.num_errors > 0);
    }
    ms_arena_close(cx.arena);
    return 0;
}
