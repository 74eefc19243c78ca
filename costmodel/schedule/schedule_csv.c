/* Reads schedule files (CSV): cells become actions row by row; then stages get their
 * ranks. Forwards are counted before arrays of stages x micro-batches are allocated, so
 * that a file with huge micro-batch numbers takes no memory. */
#include "costmodel/schedule/schedule_csv.h"

#include "base/csv.h"
#include "costmodel/schedule/schedule_priv.h"

#include <assert.h>
#include <string.h>

#define MAX_STAGES      16383
#define MAX_MICROBATCH  ((1 << 22) - 1)
#define MAX_ACTIONS     (1 << 22)
#define MAX_SHOWN_BYTES 40 /* bytes of a cell shown in a message */

/* ---- one cell ---- */

/* An objection to a cell of a schedule file, and a hint. */
typedef struct objection {
    const char *message; /* NULL: nothing is wrong */
    const char *hint;
} objection;

static bool read_number(const char **text, int most, int *out)
{
    const char *at = *text;
    long value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = 10 * value + (*at - '0');
        if (value > most)
            return false;
    }
    bool found = at > *text;
    *text = at;
    *out = (int)value;
    return found;
}

static bool starts_with(const char *text, const char *word)
{
    return strncmp(text, word, strlen(word)) == 0;
}

static bool names_communication(const char *text)
{
    static const char *const words[] = {"UNSHARD", "RESHARD", "REDUCE_GRAD", "SEND_F",
                                        "RECV_F",  "SEND_B",  "RECV_B"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (starts_with(text, words[i]))
            return true;
    return false;
}

/* Reads an action such as "2F0" at *text and moves *text behind it. */
static objection read_simple(const char **text, ms_action *out)
{
    static const char letters[] = "FBIW"; /* [ms_action_kind] letter in a schedule file */
    int stage, microbatch;
    if (!read_number(text, MAX_STAGES - 1, &stage))
        return (objection){"is no action: it does not begin with a stage below 16383",
                           "cells are like 2F0, 1I3, 1W3, 0B7 or (0F3;7B1)OVERLAP_F_B"};
    if (names_communication(*text))
        return (objection){"is no computation",
                           "leave out what moves data: sends, gathers and reductions "
                           "follow from the order of F, I, W and B"};
    const char *letter = NULL;
    if (**text != '\0')
        letter = strchr(letters, **text);
    if (letter == NULL) {
        return (objection){
            "is no action: no F, I, W or B follows the stage",
            "F is a forward, B a backward, I and W its gradients of inputs "
            "and of weights"};
    }
    ++*text;
    if (!read_number(text, MAX_MICROBATCH, &microbatch))
        return (objection){
            "is no action: it does not end with a micro-batch below 4194304",
            "micro-batches count from 0: 2F0 is the first one"};
    *out = (ms_action){.kind = (unsigned char)(letter - letters),
                       .stage = (short)stage,
                       .microbatch = microbatch};
    return (objection){0};
}

/* Reads a pair such as "(0F3;7B1)OVERLAP_F_B" at *text and moves *text behind it. */
static objection read_pair(const char **text, ms_action *out)
{
    const objection wrong = {
        "is no pair", "a pair is a forward and a whole backward: (0F3;7B1)OVERLAP_F_B"};
    ms_action forward, backward;
    ++*text;
    objection found = read_simple(text, &forward);
    if (found.message != NULL || **text != ';')
        return found.message != NULL ? found : wrong;
    ++*text;
    found = read_simple(text, &backward);
    if (found.message != NULL)
        return found;
    if (!starts_with(*text, ")OVERLAP_F_B") || forward.kind != MS_FORWARD ||
        backward.kind != MS_BACKWARD)
        return wrong;
    *text += strlen(")OVERLAP_F_B");
    if (forward.stage == backward.stage && forward.microbatch == backward.microbatch)
        return (objection){"pairs a forward with the backward that needs it",
                           "the backward of a pair is of another micro-batch or stage"};
    *out = (ms_action){.kind = MS_OVERLAP,
                       .stage = forward.stage,
                       .microbatch = forward.microbatch,
                       .backward_stage = backward.stage,
                       .backward_microbatch = backward.microbatch};
    return (objection){0};
}

static objection read_cell(const char *text, ms_action *out)
{
    objection found = text[0] == '(' ? read_pair(&text, out) : read_simple(&text, out);
    if (found.message != NULL)
        return found;
    text += strspn(text, " \t");
    if (*text != '\0')
        return (objection){"has something after its action",
                           "one action a cell, cells separated by commas"};
    return found;
}

/* ---- rows ---- */

typedef struct csv_rank {
    int line;
    int first_action;
} csv_rank;

typedef struct reader {
    ms_ctx *cx;
    const char *file;
    ms_action_list list;
    ms_action_place *places; /* (num_places): line and column of each action */
    int num_places;
    csv_rank *ranks; /* (capacity) ranks read, one per row of the file */
    int num_ranks, capacity;
} reader;

static ms_loc loc_at(const reader *r, int line, int column)
{
    return (ms_loc){.file = r->file, .line = line, .column = column};
}

static ms_loc loc_of(const reader *r, int action)
{
    return loc_at(r, r->places[action].line, r->places[action].column);
}

static void add_action(reader *r, ms_action action, int line, int column)
{
    MS_MAKE_ROOM(r->cx->arena, r->places, r->list.num, r->num_places, 64);
    r->places[r->list.num] = (ms_action_place){line, column};
    ms_action_push(&r->list, action);
}

static ms_status fail_cell(const reader *r, ms_loc loc, const char *cell, objection found)
{
    bool cut = strlen(cell) > MAX_SHOWN_BYTES;
    ms_status status = ms_fail(r->cx, MS_EINPUT, loc, "\"%.*s%s\" %s", MAX_SHOWN_BYTES,
                               cell, cut ? "..." : "", found.message);
    ms_hint(r->cx, "%s", found.hint);
    return status;
}

static ms_status take_cell(reader *r, const char *cell, int line, int column)
{
    if (cell[0] == '\0')
        return MS_OK;
    ms_action action;
    objection found = read_cell(cell, &action);
    if (found.message != NULL)
        return fail_cell(r, loc_at(r, line, column), cell, found);
    if (r->list.num == MAX_ACTIONS)
        return ms_fail(r->cx, MS_EINPUT, loc_at(r, line, column),
                       "there are more than %d actions", MAX_ACTIONS);
    add_action(r, action, line, column);
    return MS_OK;
}

static void open_rank(reader *r, int line)
{
    MS_MAKE_ROOM(r->cx->arena, r->ranks, r->num_ranks, r->capacity, 64);
    r->ranks[r->num_ranks++] = (csv_rank){line, r->list.num};
}

static ms_status read_row(reader *r, const ms_csv_row *row)
{
    ms_status status = MS_OK;
    open_rank(r, row->line);
    for (int i = 0; i < row->num_cells; i++) {
        const char *cell = row->cells[i];
        size_t blanks = strspn(cell, " \t");
        ms_status found =
            take_cell(r, cell + blanks, row->line, row->columns[i] + (int)blanks);
        status = found == MS_OK ? status : found;
    }
    if (status != MS_OK || r->list.num > r->ranks[r->num_ranks - 1].first_action)
        return status;
    status = ms_fail(r->cx, MS_EINPUT, loc_at(r, row->line, 0), "rank %d has no actions",
                     r->num_ranks - 1);
    ms_hint(r->cx, "one row per pipeline rank, each with one stage at least");
    return status;
}

static ms_status read_rows(reader *r, ms_csv *csv, ms_arena *scratch)
{
    ms_status status = MS_OK;
    ms_csv_row row;
    ms_arena_mark mark = ms_arena_save(scratch);
    while (ms_csv_next(scratch, csv, &row)) {
        ms_status found =
            row.fault != NULL
                ? ms_fail(r->cx, MS_EINPUT, loc_at(r, row.line, 0), "%s", row.fault)
                : read_row(r, &row);
        status = found == MS_OK ? status : found;
        ms_arena_rewind(scratch, mark);
    }
    if (status == MS_OK && r->num_ranks == 0) {
        status =
            ms_fail(r->cx, MS_EINPUT, (ms_loc){.file = r->file}, "there are no actions");
        ms_hint(r->cx, "one row per pipeline rank: 0F0,0F1,0B0,0B1");
    }
    if (status != MS_OK)
        return status;
    open_rank(r, 0); /* ends the last rank's list */
    r->num_ranks--;
    assert(r->num_ranks > 0);
    return MS_OK;
}

/* ---- stages ---- */

/* Rank, first action and number of forwards of every stage in a schedule file. */
typedef struct stages {
    int num_stages, num_microbatches;
    short *rank;       /* (num_stages) rank of a stage; -1: unknown */
    int *first;        /* (num_stages) index of its first action */
    int *num_forwards; /* (num_stages) its number of forwards */
} stages;

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static stages open_stages(const reader *r)
{
    stages all = {0};
    for (int i = 0; i < r->list.num; i++) {
        const ms_action *a = &r->list.actions[i];
        all.num_stages = larger(all.num_stages, a->stage + 1);
        all.num_microbatches = larger(all.num_microbatches, a->microbatch + 1);
        if (a->kind != MS_OVERLAP)
            continue;
        all.num_stages = larger(all.num_stages, a->backward_stage + 1);
        all.num_microbatches = larger(all.num_microbatches, a->backward_microbatch + 1);
    }
    all.rank = MS_NEW_ARRAY(r->cx->arena, all.num_stages, short);
    all.first = MS_NEW_ARRAY(r->cx->arena, all.num_stages, int);
    all.num_forwards = MS_NEW_ARRAY(r->cx->arena, all.num_stages, int);
    for (int s = 0; s < all.num_stages; s++)
        all.rank[s] = -1;
    return all;
}

static ms_status place_stage(const reader *r, stages *all, int stage, int rank,
                             int action)
{
    if (all->rank[stage] < 0) {
        all->rank[stage] = (short)rank;
        all->first[stage] = action;
    }
    if (all->rank[stage] == rank)
        return MS_OK;
    ms_status status =
        ms_fail(r->cx, MS_EINPUT, loc_of(r, action),
                "stage %d runs on rank %d and on rank %d", stage, rank, all->rank[stage]);
    ms_hint(r->cx, "a stage lives on one rank; its first action is in line %d",
            r->places[all->first[stage]].line);
    return status;
}

static ms_status place_all(const reader *r, stages *all)
{
    for (int rank = 0; rank < r->num_ranks; rank++) {
        int end = r->ranks[rank + 1].first_action;
        for (int i = r->ranks[rank].first_action; i < end; i++) {
            const ms_action *a = &r->list.actions[i];
            MS_TRY(place_stage(r, all, a->stage, rank, i));
            if (a->kind == MS_OVERLAP)
                MS_TRY(place_stage(r, all, a->backward_stage, rank, i));
            all->num_forwards[a->stage] += a->kind == MS_FORWARD || a->kind == MS_OVERLAP;
        }
    }
    return MS_OK;
}

/* Checks that every stage has a rank, and every rank equally many stages. */
static ms_status check_placement(const reader *r, const stages *all)
{
    int *num_on = MS_NEW_ARRAY(r->cx->arena, r->num_ranks, int);
    for (int s = 0; s < all->num_stages; s++) {
        if (all->rank[s] < 0) {
            ms_status status = ms_fail(r->cx, MS_EINPUT, (ms_loc){.file = r->file},
                                       "no rank runs stage %d, but there is a stage %d",
                                       s, all->num_stages - 1);
            ms_hint(r->cx, "stages count from 0 without gaps");
            return status;
        }
        num_on[all->rank[s]]++;
    }
    for (int rank = 1; rank < r->num_ranks; rank++) {
        if (num_on[rank] == num_on[0])
            continue;
        ms_status status = ms_fail(r->cx, MS_EINPUT, loc_at(r, r->ranks[rank].line, 0),
                                   "rank %d has %d of the %d stages, rank 0 has %d", rank,
                                   num_on[rank], all->num_stages, num_on[0]);
        ms_hint(r->cx, "every rank has the same number of stages");
        return status;
    }
    return MS_OK;
}

/* The first micro-batch that a stage does not run forward. */
static int find_missing(const reader *r, const stages *all, int stage)
{
    int rank = all->rank[stage], end = r->ranks[rank + 1].first_action, missing = 0;
    bool *seen = MS_NEW_ARRAY(r->cx->arena, all->num_microbatches + 1, bool);
    for (int i = r->ranks[rank].first_action; i < end; i++) {
        const ms_action *a = &r->list.actions[i];
        bool forward = a->kind == MS_FORWARD || a->kind == MS_OVERLAP;
        if (forward && a->stage == stage)
            seen[a->microbatch] = true;
    }
    while (seen[missing])
        missing++;
    return missing;
}

/* Checks that every stage has at least as many forwards as there are micro-batches. */
static ms_status check_counts(const reader *r, const stages *all)
{
    for (int s = 0; s < all->num_stages; s++) {
        if (all->num_forwards[s] >= all->num_microbatches)
            continue;
        ms_status status = ms_fail(
            r->cx, MS_EINPUT, loc_at(r, r->ranks[all->rank[s]].line, 0),
            "stage %d runs %d of %d micro-batches forward: micro-batch %d is missing", s,
            all->num_forwards[s], all->num_microbatches, find_missing(r, all, s));
        ms_hint(r->cx, "every stage runs every micro-batch; they count from 0");
        return status;
    }
    return MS_OK;
}

/* ---- tables ---- */

static void make_table(const reader *r, const stages *all, ms_schedule_shape *out)
{
    ms_schedule_table *table = MS_NEW(r->cx->arena, ms_schedule_table);
    int *first_action = MS_NEW_ARRAY(r->cx->arena, r->num_ranks + 1, int);
    for (int rank = 0; rank <= r->num_ranks; rank++)
        first_action[rank] = r->ranks[rank].first_action;
    *table = (ms_schedule_table){.num_ranks = r->num_ranks,
                                 .num_stages = all->num_stages,
                                 .num_microbatches = all->num_microbatches,
                                 .first_action = first_action,
                                 .actions = r->list.actions,
                                 .rank_of_stage = all->rank,
                                 .places = r->places};
    *out = (ms_schedule_shape){.kind = MS_CUSTOM,
                               .num_ranks = r->num_ranks,
                               .num_microbatches = all->num_microbatches,
                               .virtual_stages = all->num_stages / r->num_ranks,
                               .table = table};
}

ms_status ms_schedule_csv_read(ms_ctx *cx, const char *name, const char *text,
                               size_t length, ms_schedule_shape *out)
{
    reader r = {.cx = cx, .file = name, .list = {.arena = cx->arena}};
    ms_csv csv = ms_csv_open(text, length);
    ms_arena *scratch = ms_arena_open();
    ms_status status = read_rows(&r, &csv, scratch);
    ms_arena_close(scratch);
    if (status != MS_OK)
        return status;
    stages all = open_stages(&r);
    MS_TRY(place_all(&r, &all));
    MS_TRY(check_placement(&r, &all));
    MS_TRY(check_counts(&r, &all));
    make_table(&r, &all, out);
    return MS_OK;
}

ms_status ms_schedule_csv_load(ms_ctx *cx, const char *path, ms_schedule_shape *out)
{
    ms_csv csv;
    MS_TRY(ms_csv_load(cx, path, &csv));
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    return ms_schedule_csv_read(cx, name, csv.text, csv.length, out);
}

char *ms_schedule_csv_row(ms_arena *arena, const ms_schedule *schedule, int rank)
{
    int first = schedule->first_action[rank], end = schedule->first_action[rank + 1];
    ms_arena *scratch = ms_arena_open();
    const char **cells = MS_NEW_ARRAY(scratch, end - first, const char *);
    size_t length = 0;
    for (int i = first; i < end; i++) {
        cells[i - first] = ms_action_text(scratch, &schedule->actions[i]);
        length += strlen(cells[i - first]) + 1;
    }
    char *row = ms_arena_alloc(arena, length + 1), *at = row;
    for (int i = 0; i < end - first; i++) {
        size_t cell_length = strlen(cells[i]);
        memcpy(at, cells[i], cell_length);
        at += cell_length;
        *at++ = ',';
    }
    if (at > row)
        at[-1] = '\0';
    ms_arena_close(scratch);
    return row;
}

void ms_schedule_csv_write(FILE *out, const ms_schedule *schedule)
{
    for (int rank = 0; rank < schedule->shape.num_ranks; rank++) {
        ms_arena *scratch = ms_arena_open();
        fprintf(out, "%s\n", ms_schedule_csv_row(scratch, schedule, rank));
        ms_arena_close(scratch);
    }
}
