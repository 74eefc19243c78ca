/* Fuzzes the reader of sequence lengths: no crash, every refusal has a message, and moments
 * and maxima lie between the shortest and the longest length. */
#include "costmodel/plan/sequence_lengths.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const double longest = 4096.0, slack = 1.0 + 1e-9;
    ms_arena *arena = ms_arena_open();
    ms_ctx cx = {.arena = arena};
    ms_lengths lengths;
    ms_csv csv = ms_csv_open((const char *)data, size);
    bool read = ms_lengths_read(&cx, "fuzz", csv, longest, &lengths) == MS_OK;
    require(read == (cx.num_errors == 0));
    if (read) {
        double mean = lengths.mean_tokens, of_token = ms_lengths_of_token(&lengths);
        require(mean * slack >= 1.0 && mean <= longest * slack);
        require(of_token * slack >= mean && of_token <= longest * slack);
        ms_lengths of_8 = ms_lengths_longest(arena, &lengths, 8.0);
        require(of_8.mean_tokens * slack >= mean && of_8.mean_tokens <= longest * slack);
        require(ms_lengths_excess_frac(&lengths, longest, 8.0) >= -1e-9);
    }
    ms_arena_close(arena);
    return 0;
}
