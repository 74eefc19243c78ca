/* Fuzzes files of GEMM algorithms: what is written of an accepted file can be read. */
#include "exec/cuda/cuda_gemm_choices.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *text_of(const ms_cuda_gemm_choices *choices, size_t *length)
{
    char *text = NULL;
    FILE *file = open_memstream(&text, length);
    if (file == NULL)
        abort();
    ms_jout out = ms_jout_open(file);
    ms_cuda_gemm_choices_write(choices, &out);
    ms_jout_close(&out);
    (void)fclose(file);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_cuda_gemm_choices *choices = NULL, *again = NULL;
    ms_status status =
        ms_cuda_gemm_choices_parse(&cx, "fuzz", (const char *)data, size, &choices);
    if ((status != MS_OK) != (cx.first != NULL) || (status != MS_OK) != (choices == NULL))
        abort();
    if (choices != NULL) {
        size_t length;
        char *text = text_of(choices, &length);
        if (ms_cuda_gemm_choices_parse(&cx, "again", text, length, &again) != MS_OK)
            abort();
        free(text);
    }
    ms_cuda_gemm_choices_close(choices);
    ms_cuda_gemm_choices_close(again);
    ms_arena_close(cx.arena);
    return 0;
}
