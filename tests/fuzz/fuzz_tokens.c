/* Fuzzes files of training tokens: an accepted file gives sequences of tokens of the
 * vocabulary at any training step. */
#include "exec/params/tokens.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define VOCAB  1000
#define LENGTH 3

static void use(const ms_tokens *tokens)
{
    int inputs[LENGTH], targets[LENGTH];
    for (long step = 0; step < 1000000; step = 7 * step + 1) {
        ms_tokens_sequence(tokens, step, step % 5, inputs, targets);
        for (int i = 0; i < LENGTH; i++)
            if (inputs[i] < 0 || inputs[i] >= VOCAB || targets[i] < 0 ||
                targets[i] >= VOCAB)
                abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_tokens tokens = {.vocab = VOCAB, .sequence_length = LENGTH, .global_batch = 5};
    if (ms_tokens_read(&cx, "fuzz", (const char *)data, size, &tokens) == MS_OK)
        use(&tokens);
    else if (cx.num_errors == 0)
        abort();
    ms_arena_close(cx.arena);
    return 0;
}
