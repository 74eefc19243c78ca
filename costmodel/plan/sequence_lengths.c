#include "costmodel/plan/sequence_lengths.h"

#include "base/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lengths of a log-normal distribution; neighbours differ by 0.5 % at 8192 tokens. */
#define NUM_LENGTHS 2048
#define MAX_TOKENS  4294967296.0
#define MAX_COUNT   1e15

const char *const ms_packing_names[] = {"none", "packed", "padded", "padded-to-seq",
                                        NULL};

/* ---- moments ---- */

/* Probability of the i-th length. */
static double share(const ms_lengths *lengths, int i)
{
    return lengths->at_most[i] - (i > 0 ? lengths->at_most[i - 1] : 0.0);
}

static ms_lengths with_moments(ms_lengths lengths)
{
    lengths.mean_tokens = lengths.mean_square = 0.0;
    for (int i = 0; i < lengths.num; i++) {
        double tokens = lengths.tokens[i];
        lengths.mean_tokens += share(&lengths, i) * tokens;
        lengths.mean_square += share(&lengths, i) * tokens * tokens;
    }
    return lengths;
}

double ms_lengths_of_token(const ms_lengths *lengths)
{
    return lengths->mean_square / lengths->mean_tokens;
}

double ms_lengths_deviation(const ms_lengths *lengths)
{
    double mean = lengths->mean_tokens;
    return sqrt(ms_max(lengths->mean_square - mean * mean, 0.0));
}

double ms_lengths_pairs_per_token(const ms_lengths *lengths, double window_tokens)
{
    if (window_tokens <= 0.0)
        return 0.5 * (ms_lengths_of_token(lengths) + 1.0);
    double pairs = 0.0;
    for (int i = 0; i < lengths->num; i++) {
        double tokens = lengths->tokens[i], window = ms_min(window_tokens, tokens);
        pairs += share(lengths, i) *
                 (0.5 * window * (window + 1.0) + (tokens - window) * window);
    }
    return pairs / lengths->mean_tokens;
}

/* ---- log-normal lengths ---- */

ms_lengths ms_lengths_make(ms_arena *arena, double mean_tokens, double deviation_tokens,
                           double longest_tokens)
{
    double *tokens = MS_NEW_ARRAY(arena, NUM_LENGTHS, double);
    double *at_most = MS_NEW_ARRAY(arena, NUM_LENGTHS, double);
    ms_lengths out = {.num = NUM_LENGTHS, .tokens = tokens, .at_most = at_most};
    if (deviation_tokens <= 0.0 || longest_tokens <= 1.0) {
        out.num = 1;
        tokens[0] = ms_min(mean_tokens, longest_tokens);
        at_most[0] = 1.0;
        return with_moments(out);
    }
    double variation = deviation_tokens / mean_tokens;
    double variance = log1p(variation * variation);
    double centre = log(mean_tokens) - 0.5 * variance;
    double step = log(longest_tokens) / NUM_LENGTHS;
    for (int i = 0; i < NUM_LENGTHS; i++) {
        double edge = step * (i + 1);
        tokens[i] = 0.5 * (exp(edge - step) + exp(edge));
        at_most[i] = 0.5 * erfc((centre - edge) / sqrt(2.0 * variance));
    }
    tokens[NUM_LENGTHS - 1] = longest_tokens;
    at_most[NUM_LENGTHS - 1] = 1.0;
    return with_moments(out);
}

/* ---- maxima ---- */

ms_lengths ms_lengths_longest(ms_arena *arena, const ms_lengths *lengths, double n)
{
    double *at_most = MS_NEW_ARRAY(arena, lengths->num, double);
    for (int i = 0; i < lengths->num; i++)
        at_most[i] = pow(lengths->at_most[i], n);
    return with_moments(
        (ms_lengths){.num = lengths->num, .tokens = lengths->tokens, .at_most = at_most});
}

/* E[max] is the integral of 1 - F^n over positive values less that of F^n over negative
 * ones, F the normal distribution. */
double ms_normal_maximum(double n)
{
    const double step = 1.0 / 256.0;
    double sum = 0.0;
    for (int i = 0; i < 10 * 256 && n > 1.0; i++) {
        double x = (i + 0.5) * step / sqrt(2.0);
        sum += 1.0 - pow(0.5 * erfc(-x), n) - pow(0.5 * erfc(x), n);
    }
    return sum * step;
}

double ms_lengths_excess_frac(const ms_lengths *lengths, double tokens, double ranks)
{
    double rate = ms_lengths_of_token(lengths), variance = 0.0;
    for (int i = 0; i < lengths->num; i++) {
        double length = lengths->tokens[i], reward = length * length - rate * length;
        variance += share(lengths, i) * reward * reward;
    }
    double num_sequences = tokens / lengths->mean_tokens;
    double frac =
        ms_normal_maximum(ranks) * sqrt(variance * num_sequences) / (rate * tokens);
    /* all positions of the slowest rank could be of the longest sequences */
    return ms_min(frac, lengths->tokens[lengths->num - 1] / rate - 1.0);
}

double ms_lengths_chunk_factor(const ms_lengths *lengths, double chunk_tokens)
{
    double sum = 0.0;
    for (int i = 0; i < lengths->num; i++) {
        double length = lengths->tokens[i], chunks = ms_max(length / chunk_tokens, 1.0);
        sum += share(lengths, i) * length * length * (2.0 - 1.0 / chunks);
    }
    return sum / lengths->mean_square;
}

/* ---- files ---- */

typedef struct counted {
    double tokens, sequences;
} counted;

typedef struct reader {
    ms_ctx *cx;
    const char *path;
    double longest_tokens;
    int tokens_cell, sequences_cell; /* columns; -1: the file has no such column */
    int num, capacity;
    counted *rows; /* (capacity) */
} reader;

static ms_status read_header(reader *r, const ms_csv_row *row)
{
    r->tokens_cell = r->sequences_cell = -1;
    for (int cell = 0; cell < row->num_cells; cell++) {
        int *at = strcmp(row->cells[cell], "tokens") == 0      ? &r->tokens_cell
                  : strcmp(row->cells[cell], "sequences") == 0 ? &r->sequences_cell
                                                               : NULL;
        if (at == NULL || *at >= 0)
            return ms_csv_fail_cell(r->cx, r->path, row, cell,
                                    "one of the columns tokens, sequences");
        *at = cell;
    }
    return r->tokens_cell >= 0
               ? MS_OK
               : ms_fail(r->cx, MS_EINPUT,
                         (ms_loc){.file = r->path, .line = row->line, .column = 1},
                         "the first line must name the column tokens");
}

static bool parse_number(const ms_csv_row *row, int cell, double most, double *out)
{
    if (cell >= row->num_cells || row->cells[cell][0] == '\0')
        return false;
    char *end;
    *out = strtod(row->cells[cell], &end);
    return *end == '\0' && *out >= 0.0 && *out <= most;
}

static ms_status read_row(reader *r, const ms_csv_row *row)
{
    counted c = {.sequences = 1.0};
    if (!parse_number(row, r->tokens_cell, MAX_TOKENS, &c.tokens) || c.tokens < 1.0)
        return ms_csv_fail_cell(r->cx, r->path, row, r->tokens_cell,
                                "a length in tokens, at least 1");
    if (r->sequences_cell >= 0 &&
        !parse_number(row, r->sequences_cell, MAX_COUNT, &c.sequences))
        return ms_csv_fail_cell(r->cx, r->path, row, r->sequences_cell,
                                "a number of sequences, 0 or more");
    c.tokens = ms_min(c.tokens, r->longest_tokens);
    MS_MAKE_ROOM(r->cx->arena, r->rows, r->num, r->capacity, 256);
    r->rows[r->num++] = c;
    return MS_OK;
}

static int by_tokens(const void *a, const void *b)
{
    double x = ((const counted *)a)->tokens, y = ((const counted *)b)->tokens;
    return (x > y) - (x < y);
}

static ms_status finish(reader *r, ms_lengths *out)
{
    double total = 0.0, sum = 0.0;
    for (int i = 0; i < r->num; i++)
        total += r->rows[i].sequences;
    if (r->rows == NULL || !(total > 0.0))
        return ms_fail(r->cx, MS_EINPUT, (ms_loc){.file = r->path},
                       "the file has no sequences");
    qsort(r->rows, (size_t)r->num, sizeof *r->rows, by_tokens);
    double *tokens = MS_NEW_ARRAY(r->cx->arena, r->num, double);
    double *at_most = MS_NEW_ARRAY(r->cx->arena, r->num, double);
    int num = 0;
    for (int i = 0; i < r->num; i++) {
        sum += r->rows[i].sequences;
        if (r->rows[i].sequences == 0.0)
            continue;
        if (num == 0 || tokens[num - 1] < r->rows[i].tokens)
            tokens[num++] = r->rows[i].tokens;
        at_most[num - 1] = sum / total;
    }
    *out = with_moments((ms_lengths){.num = num, .tokens = tokens, .at_most = at_most});
    return MS_OK;
}

ms_status ms_lengths_read(ms_ctx *cx, const char *path, ms_csv csv, double longest_tokens,
                          ms_lengths *out)
{
    reader r = {.cx = cx, .path = path, .longest_tokens = longest_tokens};
    ms_csv_row row;
    for (bool is_first = true; ms_csv_next(cx->arena, &csv, &row); is_first = false) {
        if (row.fault != NULL)
            return ms_fail(cx, MS_EINPUT, (ms_loc){.file = path, .line = row.line}, "%s",
                           row.fault);
        MS_TRY(is_first ? read_header(&r, &row) : read_row(&r, &row));
    }
    return finish(&r, out);
}

ms_status ms_lengths_load(ms_ctx *cx, const char *path, double longest_tokens,
                          ms_lengths *out)
{
    ms_csv csv;
    MS_TRY(ms_csv_load(cx, path, &csv));
    return ms_lengths_read(cx, path, csv, longest_tokens, out);
}
