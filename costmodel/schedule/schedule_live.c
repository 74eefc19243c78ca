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

static void walk_rank(const ms_schedule *schedule, int rank, int *live, front *f)
{
    int from = f->count, chunks = schedule->num_chunks;
    const ms_schedule_shape *shape = &schedule->shape;
    for (int i = schedule->first_action[rank]; i < schedule->first_action[rank + 1];
         i++) {
        const ms_action *a = &schedule->actions[i];
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

static void copy_front(ms_arena *arena, const front *f, ms_schedule *schedule)
{
    int *counts = MS_NEW_ARRAY(arena, (long)f->count * f->width, int);
    short *chunks = MS_NEW_ARRAY(arena, f->count, short);
    unsigned char *kinds = MS_NEW_ARRAY(arena, f->count, unsigned char);
    for (int i = 0; i < f->count; i++) {
        memcpy(counts + (long)i * f->width, f->rows[i].counts,
               (size_t)f->width * sizeof(int));
        chunks[i] = f->rows[i].chunk;
        kinds[i] = f->rows[i].kind;
    }
    schedule->live = counts;
    schedule->live_chunk = chunks;
    schedule->live_kind = kinds;
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
        walk_rank(schedule, rank, live, &f); /* at its end `live` is 0 again */
    }
    first_live[num_ranks] = f.count;
    copy_front(arena, &f, schedule);
    ms_arena_close(scratch);
    schedule->first_live = first_live;
}
