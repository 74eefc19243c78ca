/* Tokens of a run: synthetic ones from a counter-based generator, or from a file.
 * Sequence i of step t is independent of the parallelization. */
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
    /* target of each token of from_file; NULL if it is the next token there */
    const int *labels;
    long num_from_file;
} ms_tokens;

/* Reads the tokens of a file into `tokens`, whose vocab and sequence_length must be set.
 * The file has whitespace-separated numbers, or is in safetensors format (recognized by
 * its first bytes or the ending .safetensors) with integers `input_ids` and `labels`
 * [sequences, sequence_length], labels already shifted. MS_EINPUT, with line and column,
 * for a word that is no token of the vocabulary; for fewer tokens than one sequence and
 * its next token; for other names or shapes. Steps read the file from the start and wrap
 * around at its end. */
ms_status ms_tokens_load(ms_ctx *cx, const char *path, ms_tokens *tokens);
/* Parses whitespace-separated numbers from memory; `name` stands for the file in
 * messages. */
ms_status ms_tokens_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                         ms_tokens *tokens);

/* Number of passes that `num_steps` steps make through the tokens of the file; 0 if
 * synthetic. */
double ms_tokens_passes(const ms_tokens *tokens, long num_steps);

/* Fills in inputs and targets (sequence_length) of one sequence of a step. Synthetic
 * sequences can be learned, so that the loss falls: nine times in ten a token follows
 * from the previous one by a fixed rule. With a vocabulary above 256 they use 256 evenly
 * spread tokens. */
void ms_tokens_sequence(const ms_tokens *tokens, long step, long sequence, int *inputs,
                        int *targets);

#endif
