/* Fuzzes the reader of safetensors files. The tensors of an accepted file cover its
 * data exactly, and every value can be read. */
#include "exec/params/safetensors.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const ms_safe_file *file, size_t size)
{
    size_t num_values = 0;
    volatile double sum = 0.0;
    for (int i = 0; i < file->num_tensors; i++) {
        const ms_safe_tensor *tensor = &file->tensors[i];
        if (tensor->num_dims < 0 || tensor->num_dims > MS_SAFE_DIMS ||
            ms_safe_find(file, tensor->name) != tensor)
            abort();
        for (long k = 0; k < tensor->count; k++)
            sum = sum + tensor->values[k];
        num_values += (size_t)tensor->count;
    }
    if (num_values > size / 2)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_safe_file file = {0};
    if (ms_safetensors_read(&cx, "fuzz", data, size, &file) == MS_OK)
        use(&file, size);
    else if (cx.num_errors == 0)
        abort();
    ms_arena_close(cx.arena);
    return 0;
}
