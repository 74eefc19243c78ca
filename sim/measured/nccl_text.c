/* Reads what nccl-tests prints (NVIDIA/nccl-tests, src/util.cu): lines of ranks and a
 * header behind '#', rows of a size, its times out of place and in place. Several tests
 * may follow one another; lines of launchers and of NCCL itself are passed over. */
#include "sim/measured/measured_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 48

/* A word of a line; it is not zero-terminated. */
typedef struct word {
    const char *text;
    size_t length;
} word;

typedef struct reader {
    ms_measured_reader *out;
    ms_nccl_test test;
    int line;
    const char *start; /* start of the line */
    word words[MAX_WORDS];
    int num_words;
    /* columns of the header read last; num_columns 0: none was read */
    int num_columns, time_column;
    const char *exported; /* algorithm of all tests that follow; NULL: none */
    bool has_rows;        /* the test has some: ranks that follow are the next one's */
} reader;

static bool is_word(const word *w, const char *text)
{
    return w->length == strlen(text) && memcmp(w->text, text, w->length) == 0;
}

static const char *copy_word(const reader *r, const word *w)
{
    return ms_arena_strndup(r->out->cx->arena, w->text, w->length);
}

static ms_nccl_place place(const reader *r, const word *at)
{
    return (ms_nccl_place){.line = r->line, .column = (int)(at->text - r->start) + 1};
}

static ms_loc loc_of(const reader *r, const word *at)
{
    ms_nccl_place found = place(r, at);
    return (ms_loc){
        .file = r->out->options->name, .line = found.line, .column = found.column};
}

/* Skips what launchers put before a line: "[1,0]<stdout>:" of mpirun, "0: " of srun. */
static size_t skip_prefix(const char *line, size_t length)
{
    size_t at = 0;
    while (at < length && (isdigit((unsigned char)line[at]) != 0 || line[at] == ' '))
        at++;
    if (at > 0 && at < length && line[at] == ':')
        return at + 1;
    const char *end = length > 0 && line[0] == '[' ? memchr(line, '>', length) : NULL;
    size_t behind = end == NULL ? 0 : (size_t)(end - line) + 1;
    return behind > 0 && behind < length && line[behind] == ':' ? behind + 1 : 0;
}

static void split(reader *r, const char *line, size_t length)
{
    size_t at = skip_prefix(line, length);
    r->num_words = 0;
    while (r->num_words < MAX_WORDS) {
        while (at < length && isspace((unsigned char)line[at]) != 0)
            at++;
        size_t from = at;
        while (at < length && isspace((unsigned char)line[at]) == 0)
            at++;
        if (at == from)
            return;
        r->words[r->num_words++] = (word){line + from, at - from};
    }
}

/* Begins another test when the last one has ranks; one without rows was aborted. */
static void begin_test(reader *r)
{
    if (!r->has_rows && r->test.ranks == 0)
        return;
    if (!r->has_rows)
        ms_texts_print(r->out->cx->arena, &r->out->out->ignored,
                       "a test of %ld ranks without rows, before line %d", r->test.ranks,
                       r->line);
    r->test = (ms_nccl_test){.algorithm = r->exported};
    r->num_columns = 0;
    r->has_rows = false;
}

/* ---- lines that are no rows ---- */

/* "#  Rank  0 Group  0 Pid  1 on  host device  0 [0000:18:00] NVIDIA H100" */
static ms_status read_rank(reader *r)
{
    const word *host = NULL, *group = NULL, *gpu = NULL;
    for (int i = 2; i + 1 < r->num_words; i++) {
        const word *w = &r->words[i], *next = w + 1;
        if (is_word(w, "Group"))
            group = next;
        else if (is_word(w, "on") && host == NULL)
            host = next;
        else if (w->text[0] == '[' && host != NULL && gpu == NULL)
            gpu = next;
    }
    if (host == NULL)
        return ms_fail(r->out->cx, MS_EINPUT, loc_of(r, &r->words[1]),
                       "a rank without its host: \"Rank N Pid N on HOST device N\"");
    const word *last = &r->words[r->num_words - 1];
    word name = {0};
    if (gpu != NULL)
        name = (word){gpu->text, (size_t)(last->text + last->length - gpu->text)};
    return ms_nccl_add_rank(r->out, &r->test, place(r, &r->words[1]), copy_word(r, host),
                            group == NULL ? NULL : copy_word(r, group),
                            gpu == NULL ? NULL : copy_word(r, &name));
}

/* "#  size  count  type  redop  root  time  algbw  busbw #wrong  time ..." */
static ms_status read_header(reader *r)
{
    r->num_columns = r->num_words - 1;
    r->time_column = -1;
    for (int i = r->num_words - 1; i > 1; i--) {
        if (is_word(&r->words[i], "cputime"))
            return ms_fail(r->out->cx, MS_EINPUT, loc_of(r, &r->words[i]),
                           "times are of the CPU (option -C), not of the collective");
        if (is_word(&r->words[i], "time"))
            r->time_column = i - 1;
    }
    if (r->time_column < 0)
        return ms_fail(r->out->cx, MS_EINPUT, loc_of(r, &r->words[1]),
                       "the header has no column \"time\"");
    return MS_OK;
}

/* Sets the algorithm of a line "NCCL_ALGO=Ring" or "NCCL_ALGO set by environment to Ring". */
static void find_algorithm(reader *r)
{
    static const char key[] = "NCCL_ALGO";
    for (int i = 0; i < r->num_words; i++) {
        const word *w = &r->words[i], *value = &r->words[r->num_words - 1];
        if (w->length < sizeof key - 1 || memcmp(w->text, key, sizeof key - 1) != 0)
            continue;
        word text = *value;
        if (w->length > sizeof key && w->text[sizeof key - 1] == '=')
            text = (word){w->text + sizeof key, w->length - sizeof key};
        else if (w->length != sizeof key - 1 || w == value)
            continue;
        char *copy = ms_arena_strndup(r->out->cx->arena, text.text, text.length);
        for (char *at = copy; *at != '\0'; at++)
            *at = (char)tolower((unsigned char)*at);
        r->test.algorithm = copy;
        if (i > 0 && is_word(&r->words[i - 1], "export"))
            r->exported = copy;
    }
}

/* Reads what a line says of the test under way, or of the next one. */
static void read_remark(reader *r)
{
    for (int i = 0; i < r->num_words; i++) {
        const char *found = ms_nccl_collective(r->words[i].text, r->words[i].length);
        if (found == NULL || (i > 0 && is_word(&r->words[i - 1], "concluded:")))
            continue;
        begin_test(r);
        r->test.collective = found;
    }
    find_algorithm(r);
}

static ms_status read_comment(reader *r)
{
    if (r->num_words > 2 && is_word(&r->words[1], "Rank")) {
        if (r->has_rows || is_word(&r->words[2], "0"))
            begin_test(r);
        return read_rank(r);
    }
    if (r->num_words > 2 && is_word(&r->words[1], "size") &&
        is_word(&r->words[2], "count"))
        return read_header(r);
    if (r->num_words > 2 && is_word(&r->words[1], "Avg"))
        begin_test(r);
    read_remark(r);
    return MS_OK;
}

/* ---- rows ---- */

static bool is_number(const word *w, double *out)
{
    char text[48], *end;
    if (w->length == 0 || w->length >= sizeof text)
        return false;
    memcpy(text, w->text, w->length);
    text[w->length] = '\0';
    *out = strtod(text, &end);
    return *end == '\0' && isdigit((unsigned char)text[0]) != 0 && *out < 1e18;
}

/* Whether the line begins with a size and a count of elements, as rows do. */
static bool is_row(const reader *r)
{
    double unused;
    return r->num_columns > 0 && r->num_words > 4 && is_number(&r->words[0], &unused) &&
           is_number(&r->words[1], &unused) &&
           isalpha((unsigned char)r->words[2].text[0]) != 0;
}

/* Reads a row. Collectives without an operation leave the column `redop` empty in older
 * versions, so that a row then has one word less than the header. */
static ms_status read_row(reader *r)
{
    const int wrong_after_time = 3;
    int missing = r->num_words < r->num_columns ? r->num_columns - r->num_words : 0;
    int at = r->time_column - missing;
    ms_nccl_row row = {.place = place(r, &r->words[0])};
    if (missing > 1 || at + wrong_after_time >= r->num_words)
        return ms_fail(r->out->cx, MS_EINPUT, loc_of(r, &r->words[0]),
                       "a row of %d words under a header of %d columns", r->num_words,
                       r->num_columns);
    is_number(&r->words[0], &row.size_bytes);
    if (!is_number(&r->words[at], &row.time_us) || !(row.time_us > 0.0))
        return ms_fail(r->out->cx, MS_EINPUT, loc_of(r, &r->words[at]),
                       "\"%s\" is not a time in us", copy_word(r, &r->words[at]));
    const word *wrong = &r->words[at + wrong_after_time];
    if (!is_number(wrong, &row.wrong) && !is_word(wrong, "N/A"))
        return ms_fail(r->out->cx, MS_EINPUT, loc_of(r, wrong),
                       "\"%s\" is not a number of wrong values, or N/A",
                       copy_word(r, wrong));
    r->has_rows = true;
    return ms_nccl_add_row(r->out, &r->test, &row);
}

ms_status ms_nccl_read_text(ms_measured_reader *out, const char *text, size_t length)
{
    reader r = {.out = out};
    ms_lines lines = {text, length, 0, 0};
    size_t line_length;
    while (ms_lines_next(&lines, &r.start, &line_length)) {
        r.line = lines.number;
        split(&r, r.start, line_length);
        if (r.num_words == 0)
            continue;
        if (r.words[0].text[0] == '#')
            MS_TRY(read_comment(&r));
        else if (is_row(&r))
            MS_TRY(read_row(&r));
        else
            read_remark(&r);
    }
    return MS_OK;
}
