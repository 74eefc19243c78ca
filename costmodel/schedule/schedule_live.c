/* Fills ms_schedule.live: counts, before each backward, micro-batches between forward and
 * backward and between I and W, by chunk; keeps rows that can be a memory peak. */
#include "costmodel/schedule/schedule_priv.h"

#include <string.h>

typedef struct live_row {
    int *counts; /* (2 num_chunks) one row of ms_schedule.live; NULL: not allocated */
    short chunk;
    unsigned char kind;
} live_row;

/* Rows of ms_schedule.live that no other row of the same rank dominates, rank by rank. */
typedef struct front {
    ms_arena *arena;
    int width;
    int count;
    int capacity;
    live_row *rows;
} front;

static bool is_covered(const int *counts, const int *by, int width)
{
    for (int i = 0; i < width; i++)
        if (counts[i] > by[i])
            return false;
    return true;
}

/* Adds a row to a rank's rows (from index `from` on), unless one of them dominates it. */
static void add_to_front(front *f, int from, const int *counts, int chunk, int kind)
{
    /* newest row first: the likeliest to dominate */
    for (int i = f->count - 1; i >= from; i--)
        if (f->rows[i].chunk == chunk && f->rows[i].kind == kind &&
            is_covered(counts, f->rows[i].counts, f->width))
            return;
    int num_left = from;
    for (int i = from; i < f->count; i++) {
        live_row row = f->rows[i];
        if (row.chunk == chunk && row.kind == kind &&
            is_covered(row.counts, counts, f->width))
            continue;
        f->rows[i] = f->rows[num_left]; /* keeps memory of dominated rows for reuse */
        f->rows[num_left++] = row;
    }
    f->count = num_left;
    MS_MAKE_ROOM(f->arena, f->rows, f->count, f->capacity, 64);
    live_row *row = &f->rows[f->count++];
    if (row->counts == NULL)
        row->counts = MS_NEW_ARRAY(f->arena, f->width, int);
    memcpy(row->counts, counts, (size_t)f->width * sizeof(int));
    row->chunk = (short)chunk;
    row->kind = (unsigned char)kind;
}

static void walk_rank(const ms_schedule *schedule, const ms_rank_actions *list, int *live,
                      front *f)
{
    int from = f->count, chunks = schedule->num_chunks;
    const ms_schedule_shape *shape = &schedule->shape;
    for (int i = 0; i < list->num; i++) {
        const ms_action *a = &list->actions[i];
        int kind = a->kind, stage = a->stage;
        if (kind == MS_FORWARD || kind == MS_OVERLAP)
            live[ms_schedule_chunk(shape, stage)]++;
        if (kind == MS_FORWARD)
            continue;
        if (kind == MS_OVERLAP) {
            stage = a->backward_stage;
            kind = MS_BACKWARD;
        }
        int chunk = ms_schedule_chunk(shape, stage);
        add_to_front(f, from, live, chunk, kind);
        if (kind == MS_BACKWARD_WEIGHT) {
            live[chunks + chunk]--;
            continue;
        }
        live[chunk]--;
        if (kind == MS_BACKWARD_INPUT)
            live[chunks + chunk]++;
    }
}

/* The rows of a front, with counts of `num_alike` micro-batches for each one. */
static ms_live_rows copy_front(ms_arena *arena, const front *f, int num_alike)
{
    int *counts = MS_NEW_ARRAY(arena, (long)f->count * f->width, int);
    short *chunk = MS_NEW_ARRAY(arena, f->count, short);
    unsigned char *kind = MS_NEW_ARRAY(arena, f->count, unsigned char);
    for (int i = 0; i < f->count; i++) {
        for (int j = 0; j < f->width; j++)
            counts[(long)i * f->width + j] = num_alike * f->rows[i].counts[j];
        chunk[i] = f->rows[i].chunk;
        kind[i] = f->rows[i].kind;
    }
    return (ms_live_rows){f->count, counts, chunk, kind};
}

void ms_schedule_find_live(ms_arena *arena, ms_schedule *schedule)
{
    int num_ranks = schedule->shape.num_ranks, width = 2 * schedule->num_chunks;
    int *first_live = MS_NEW_ARRAY(arena, num_ranks + 1, int);
    ms_arena *scratch = ms_arena_open();
    front f = {.arena = scratch, .width = width};
    int *live = MS_NEW_ARRAY(scratch, width, int);
    for (int rank = 0; rank < num_ranks; rank++) {
        first_live[rank] = f.count;
        ms_rank_actions list = ms_schedule_rank_actions(schedule, rank, NULL);
        walk_rank(schedule, &list, live, &f); /* at its end `live` is 0 again */
    }
    first_live[num_ranks] = f.count;
    ms_live_rows rows = copy_front(arena, &f, schedule->num_alike);
    schedule->live = rows.counts;
    schedule->live_chunk = rows.chunk;
    schedule->live_kind = rows.kind;
    ms_arena_close(scratch);
    schedule->first_live = first_live;
}

ms_live_rows ms_schedule_live_rows(ms_arena *arena, const ms_schedule *schedule,
                                   int first_rank, int num_ranks)
{
    long width = 2L * schedule->num_chunks;
    if (schedule->live != NULL) {
        int first = schedule->first_live[first_rank];
        return (ms_live_rows){schedule->first_live[first_rank + num_ranks] - first,
                              schedule->live + first * width,
                              schedule->live_chunk + first, schedule->live_kind + first};
    }
    ms_arena *scratch = ms_arena_open();
    front f = {.arena = scratch, .width = (int)width};
    int *live = MS_NEW_ARRAY(scratch, width, int);
    ms_action_list room = {.arena = scratch};
    if (ms_schedule_traits_of(schedule->shape.kind).first_keeps_most)
        num_ranks = 1;
    for (int rank = first_rank; rank < first_rank + num_ranks; rank++) {
        ms_rank_actions list = ms_schedule_rank_actions(schedule, rank, &room);
        walk_rank(schedule, &list, live, &f);
    }
    ms_live_rows rows = copy_front(arena, &f, schedule->num_alike);
    ms_arena_close(scratch);
    return rows;
}
