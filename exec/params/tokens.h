/* Tokens of a run, synthetic or from a file, independent of the parallelization. */
#ifndef MS_EXEC_PARAMS_TOKENS_H
#define MS_EXEC_PARAMS_TOKENS_H

#include "base/diag.h"

#include <stdint.h>

typedef struct ms_tokens {
    uint64_t seed;
    long vocab;
    long sequence_length;
    long global_batch;    /* sequences per step */
    const int *from_file; /* tokens of the file; NULL if synthetic */
    const int *labels;    /* target of each token of from_file; NULL: the next token */
    long num_from_file;
} ms_tokens;

/* Reads a file into `tokens`, whose vocab and sequence_length are set: numbers between
 * spaces, or safetensors (by first bytes or ending) with integers `input_ids` and
 * `labels` [sequences, sequence_length], labels already shifted. MS_EINPUT, with line and
 * column, for words that are no tokens of the vocabulary, fewer tokens than a sequence
 * and its next token, other names or shapes. Steps wrap around at the file's end. */
ms_status ms_tokens_load(ms_ctx *cx, const char *path, ms_tokens *tokens);
/* Parses numbers from memory; `name` stands for the file in messages. */
ms_status ms_tokens_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                         ms_tokens *tokens);

/* Passes that steps make through the file's tokens; 0 if synthetic. */
double ms_tokens_passes(const ms_tokens *tokens, long num_steps);

/* Fills in inputs and targets (sequence_length). Synthetic sequences can be learned: nine
 * in ten tokens follow from the one before by a fixed rule. They use at most 256 evenly
 * spread tokens. */
void ms_tokens_sequence(const ms_tokens *tokens, long step, long sequence, int *inputs,
                        int *targets);

#endif
