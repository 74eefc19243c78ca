/* Training tokens; synthetic ones depend only on (seed, step, sequence, position). */
#include "exec/params/tokens.h"

#include "base/csv.h"
#include "base/rng.h"
#include "exec/params/safetensors.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- synthetic ---- */

#define NOISE_FRAC  0.1
#define MAX_SYMBOLS 256 /* few enough to be learned in some tens of steps */

/* Symbol s is followed by (5 s + 7) mod num_symbols or, at NOISE_FRAC, a random one. */
static void make_synthetic(const ms_tokens *tokens, long step, long sequence, int *inputs,
                           int *targets)
{
    long num_symbols = tokens->vocab < MAX_SYMBOLS ? tokens->vocab : MAX_SYMBOLS;
    long stride = tokens->vocab / num_symbols;
    ms_rng rng = ms_rng_split(ms_rng_seed(tokens->seed), (uint64_t)step);
    rng = ms_rng_split(rng, (uint64_t)sequence);
    long symbol = (long)ms_rng_below(&rng, (uint64_t)num_symbols);
    for (long i = 0; i < tokens->sequence_length; i++) {
        inputs[i] = (int)(symbol * stride);
        symbol = (5 * symbol + 7) % num_symbols;
        if (ms_rng_uniform(&rng) < NOISE_FRAC)
            symbol = (long)ms_rng_below(&rng, (uint64_t)num_symbols);
        targets[i] = (int)(symbol * stride);
    }
}

void ms_tokens_sequence(const ms_tokens *tokens, long step, long sequence, int *inputs,
                        int *targets)
{
    if (tokens->from_file == NULL) {
        make_synthetic(tokens, step, sequence, inputs, targets);
        return;
    }
    long num = tokens->num_from_file, length = tokens->sequence_length;
    long at = (step * tokens->global_batch + sequence) % num * length % num;
    for (long i = 0; i < length; i++, at = (at + 1) % num) {
        inputs[i] = tokens->from_file[at];
        targets[i] = tokens->labels != NULL ? tokens->labels[at]
                                            : tokens->from_file[(at + 1) % num];
    }
}

/* ---- numbers as text ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

typedef struct token_text {
    ms_loc loc;
    const char *at, *end, *line_start;
} token_text;

static void skip_space(token_text *text)
{
    for (; text->at < text->end && is_space(*text->at); text->at++) {
        if (*text->at != '\n')
            continue;
        text->loc.line++;
        text->line_start = text->at + 1;
    }
    text->loc.column = (int)(text->at - text->line_start) + 1;
}

/* Parses the number at text->at as a token of the vocabulary, up to the next space. */
static ms_status read_word(ms_ctx *cx, token_text *text, long vocab, int *out)
{
    const char *word = text->at;
    long value = 0;
    bool digits = true;
    for (; text->at < text->end && !is_space(*text->at); text->at++) {
        digits = digits && *text->at >= '0' && *text->at <= '9';
        if (digits && value < vocab)
            value = 10 * value + (*text->at - '0');
    }
    int width = (int)(text->at - word < 40 ? text->at - word : 40);
    if (!digits) {
        ms_fail(cx, MS_EINPUT, text->loc,
                "\"%.*s\" is not a token, which is a whole number", width, word);
        return ms_hint(
            cx, "a file of tokens is whole numbers between spaces, or safetensors with "
                "input_ids and labels");
    }
    if (value >= vocab)
        return ms_fail(cx, MS_EINPUT, text->loc,
                       "token %.*s, but the vocabulary ends with %ld", width, word,
                       vocab - 1);
    *out = (int)value;
    return MS_OK;
}

ms_status ms_tokens_read(ms_ctx *cx, const char *name, const char *text, size_t length,
                         ms_tokens *tokens)
{
    token_text at = {.loc = {.file = name, .line = 1},
                     .at = text,
                     .end = text + length,
                     .line_start = text};
    int *values = ms_arena_take(cx->arena, (length / 2 + 1) * sizeof *values);
    long num = 0;
    for (skip_space(&at); at.at < at.end; skip_space(&at))
        MS_TRY(read_word(cx, &at, tokens->vocab, &values[num++]));
    if (num <= tokens->sequence_length)
        return ms_fail(cx, MS_EINPUT, (ms_loc){.file = name},
                       "%ld tokens, but a sequence of %ld and its next token need %ld",
                       num, tokens->sequence_length, tokens->sequence_length + 1);
    tokens->from_file = values;
    tokens->labels = NULL;
    tokens->num_from_file = num;
    return MS_OK;
}

/* ---- safetensors ---- */

static ms_status take_tensor(ms_ctx *cx, const char *path, const ms_safe_file *file,
                             const char *name, const ms_tokens *tokens, const int **out)
{
    ms_loc loc = {.file = path};
    const ms_safe_tensor *tensor = ms_safe_find(file, name);
    if (tensor == NULL)
        return ms_fail(cx, MS_EINPUT, loc, "no tensor \"%s\"", name);
    if (tensor->type != MS_SAFE_I64 && tensor->type != MS_SAFE_I32)
        return ms_fail(cx, MS_EINPUT, loc, "\"%s\" has type %s, must be I64 or I32", name,
                       ms_safe_type_names[tensor->type]);
    if (tensor->num_dims != 2 || tensor->shape[0] == 0 ||
        tensor->shape[1] != tokens->sequence_length)
        return ms_fail(cx, MS_EINPUT, loc, "\"%s\" must be [sequences, %ld]", name,
                       tokens->sequence_length);
    int *values = MS_NEW_ARRAY(cx->arena, tensor->count, int);
    for (long i = 0; i < tensor->count; i++) {
        double value = tensor->values[i];
        if (value < 0.0 || value >= (double)tokens->vocab) {
            return ms_fail(cx, MS_EINPUT, loc,
                           "\"%s\"[%ld, %ld] is %.0f, but the vocabulary ends with %ld",
                           name, i / tensor->shape[1], i % tensor->shape[1], value,
                           tokens->vocab - 1);
        }
        values[i] = (int)value;
    }
    *out = values;
    return MS_OK;
}

static ms_status load_tensors(ms_ctx *cx, const char *path, ms_tokens *tokens)
{
    ms_safe_file file;
    const int *inputs = NULL, *labels = NULL;
    MS_TRY(ms_safetensors_load(cx, path, &file));
    MS_TRY(take_tensor(cx, path, &file, "input_ids", tokens, &inputs));
    MS_TRY(take_tensor(cx, path, &file, "labels", tokens, &labels));
    long num = ms_safe_find(&file, "input_ids")->count;
    if (ms_safe_find(&file, "labels")->count != num)
        return ms_fail(
            cx, MS_EINPUT, (ms_loc){.file = path},
            "\"input_ids\" and \"labels\" have different numbers of sequences");
    tokens->from_file = inputs;
    tokens->labels = labels;
    tokens->num_from_file = num;
    return MS_OK;
}

/* ---- files ---- */

/* Whether a file begins like safetensors: 8 bytes of a small length, then '{'. */
static bool begins_like_safetensors(const char *path)
{
    unsigned char start[9] = {0};
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false; /* reading the tokens then reports the reason */
    size_t length = fread(start, 1, sizeof start, file);
    (void)fclose(file);
    return length == sizeof start && start[6] == 0 && start[7] == 0 && start[8] == '{';
}

static bool is_named_safetensors(const char *path)
{
    static const char ending[] = ".safetensors";
    size_t length = strlen(path);
    return length >= sizeof ending &&
           strcmp(path + length - sizeof ending + 1, ending) == 0;
}

ms_status ms_tokens_load(ms_ctx *cx, const char *path, ms_tokens *tokens)
{
    if (is_named_safetensors(path) || begins_like_safetensors(path))
        return load_tensors(cx, path, tokens);
    ms_csv text;
    MS_TRY(ms_csv_load(cx, path, &text));
    return ms_tokens_read(cx, path, text.text, text.length, tokens);
}

double ms_tokens_passes(const ms_tokens *tokens, long num_steps)
{
    double taken = (double)num_steps * (double)tokens->global_batch *
                   (double)tokens->sequence_length;
    return tokens->from_file == NULL ? 0.0 : taken / (double)tokens->num_from_file;
}
