/* Diagnostics live in the context's arena: they outlive the file that they are about. */
#include "base/diag.h"

#include "base/print.h"

#include <assert.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define MAX_DIAGS     20
#define MAX_WORD      64 /* bytes; longer words get no suggestion of a similar one */
#define MESSAGE_BYTES 2000

ms_ctx ms_ctx_quiet(const ms_ctx *cx, ms_arena *arena)
{
    return (ms_ctx){.arena = arena,
                    .verbosity = -1,
                    .configs = cx->configs,
                    .num_threads = cx->num_threads,
                    .interrupted = cx->interrupted};
}

int ms_ctx_threads(const ms_ctx *cx)
{
    return cx->num_threads > 0 ? cx->num_threads : 1;
}

/* Formats a message into the arena; text beyond MESSAGE_BYTES is cut. */
static const char *format_text(ms_arena *arena, const char *format, va_list args)
{
    char buffer[MESSAGE_BYTES];
    int length = vsnprintf(buffer, sizeof buffer, format, args);
    assert(length >= 0);
    if ((size_t)length >= sizeof buffer)
        memcpy(buffer + sizeof buffer - 4, "...", 4);
    return ms_arena_strdup(arena, buffer);
}

static const char *copy_or_null(ms_arena *arena, const char *text)
{
    if (text == NULL)
        return NULL;
    size_t length = strlen(text);
    return length < MESSAGE_BYTES
               ? ms_arena_strdup(arena, text)
               : ms_arena_printf(arena, "%.*s...", MESSAGE_BYTES - 4, text);
}

ms_status ms_fail(ms_ctx *cx, ms_status status, ms_loc loc, const char *format, ...)
{
    assert(status != MS_OK);
    cx->status = status;
    cx->num_errors++;
    if (cx->num_errors > MAX_DIAGS)
        return status;
    ms_diag *diag = MS_NEW(cx->arena, ms_diag);
    diag->status = status;
    diag->loc = loc;
    diag->loc.file = copy_or_null(cx->arena, loc.file);
    diag->loc.path = copy_or_null(cx->arena, loc.path);
    va_list args;
    va_start(args, format);
    diag->message = format_text(cx->arena, format, args);
    va_end(args);
    if (cx->last == NULL)
        cx->first = diag;
    else
        cx->last->next = diag;
    cx->last = diag;
    return status;
}

ms_status ms_hint(ms_ctx *cx, const char *format, ...)
{
    if (cx->last == NULL || cx->num_errors > MAX_DIAGS)
        return cx->status; /* errors after MAX_DIAGS are only counted and get no hint */
    va_list args;
    va_start(args, format);
    cx->last->hint = format_text(cx->arena, format, args);
    va_end(args);
    return cx->status;
}

static void print_one(const ms_diag *diag, FILE *out)
{
    const ms_loc *loc = &diag->loc;
    if (loc->file != NULL) {
        ms_print(out, "%s", loc->file);
        if (loc->line > 0)
            ms_print(out, ":%d", loc->line);
        if (loc->line > 0 && loc->column > 0)
            ms_print(out, ":%d", loc->column);
        fputs(": ", out);
    }
    ms_print(out, "error: %s", diag->message);
    if (loc->path != NULL && loc->path[0] != '\0')
        ms_print(out, " (at %s)", loc->path);
    fputc('\n', out);
    if (diag->hint != NULL)
        ms_print(out, "  hint: %s\n", diag->hint);
}

void ms_diag_print(const ms_ctx *cx, FILE *out)
{
    for (const ms_diag *diag = cx->first; diag != NULL; diag = diag->next)
        print_one(diag, out);
    if (cx->num_errors > MAX_DIAGS)
        ms_print(out, "error: %d more errors are not shown\n",
                 cx->num_errors - MAX_DIAGS);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Optimal string alignment distance (restricted Damerau-Levenshtein), ignoring case:
 * insertions, deletions, replacements and swaps of neighbours cost 1. */
static int edit_distance(const char *a, int num_a, const char *b, int num_b)
{
    int rows[3][MAX_WORD + 1];
    for (int j = 0; j <= num_b; j++)
        rows[0][j] = j;
    for (int i = 1; i <= num_a; i++) {
        int *now = rows[i % 3];
        const int *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= num_b; j++) {
            int replace = above[j - 1] + !same_letter(a[i - 1], b[j - 1]);
            now[j] = smaller(replace, smaller(above[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                same_letter(a[i - 2], b[j - 1]))
                now[j] = smaller(now[j], two_above[j - 2] + 1);
        }
    }
    return rows[num_a % 3][num_b];
}

int ms_choice_find(const char *text, const char *const *choices)
{
    for (int i = 0; choices[i] != NULL; i++)
        if (strcmp(choices[i], text) == 0)
            return i;
    return -1;
}

const char *ms_nearest(const char *text, const char *const *candidates,
                       int num_candidates)
{
    size_t length = strlen(text);
    if (length == 0 || length > MAX_WORD)
        return NULL;
    int limit = length / 3 > 2 ? (int)(length / 3) : 2;
    /* the distance stays below `length`: at least one letter of `text` is kept */
    limit = smaller(limit, (int)length - 1);
    const char *best = NULL;
    for (int i = 0; i < num_candidates; i++) {
        size_t other = strlen(candidates[i]);
        if (other == 0 || other > MAX_WORD)
            continue;
        int distance = edit_distance(text, (int)length, candidates[i], (int)other);
        if (distance > limit || distance >= (int)other)
            continue;
        best = candidates[i];
        limit = distance - 1;
    }
    return best;
}
