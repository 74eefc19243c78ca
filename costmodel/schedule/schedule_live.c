/* How many micro-batches each chunk of a rank holds between forward and backward, and
 * between I and W. Of the instants at which a backward of one chunk and kind begins,
 * those whose counts another exceeds in every chunk are left out. */
#include "costmodel/schedule/schedule_priv.h"

#include <assert.h>
#include <string.h>

/* A growing set of rows, of one rank after the other. */
typedef struct front {
    ms_arena *arena;
    int width;
    int count;
    int capacity;
    int *rows; /* (capacity, width) */
    short *chunks;
    unsigned char *kinds;
} front;

static bool is_covered(const int *row, const int *by, int width)
{
    for (int i = 0; i < width; i++)
        if (row[i] > by[i])
            return false;
    return true;
}

static void grow_front(front *f)
{
    int capacity = f->capacity == 0 ? 64 : 2 * f->capacity;
    front grown = {f->arena,
                   f->width,
                   f->count,
                   capacity,
                   MS_NEW_ARRAY(f->arena, (long)capacity * f->width, int),
                   MS_NEW_ARRAY(f->arena, capacity, short),
                   MS_NEW_ARRAY(f->arena, capacity, unsigned char)};
    if (f->count > 0) {
        size_t count = (size_t)f->count;
        memcpy(grown.rows, f->rows, count * (size_t)f->width * sizeof(int));
        memcpy(grown.chunks, f->chunks, count * sizeof(short));
        memcpy(grown.kinds, f->kinds, count);
    }
    *f = grown;
}

static int *front_row(const front *f, int i)
{
    return f->rows + (long)i * f->width;
}

static void move_row(front *f, int from, int to)
{
    memmove(front_row(f, to), front_row(f, from), (size_t)f->width * sizeof(int));
    f->chunks[to] = f->chunks[from];
    f->kinds[to] = f->kinds[from];
}

/* Adds a row from index `from` on: those before belong to other ranks. */
static void add_to_front(front *f, int from, const int *row, int chunk, int kind)
{
    for (int i = f->count - 1; i >= from;
         i--) /* the newest are the likeliest to repeat */
        if (f->chunks[i] == chunk && f->kinds[i] == kind &&
            is_covered(row, front_row(f, i), f->width))
            return;
    int kept = from;
    for (int i = from; i < f->count; i++) {
        bool same = f->chunks[i] == chunk && f->kinds[i] == kind;
        if (!same || !is_covered(front_row(f, i), row, f->width))
            move_row(f, i, kept++);
    }
    f->count = kept;
    if (f->count == f->capacity)
        grow_front(f);
    memcpy(front_row(f, f->count), row, (size_t)f->width * sizeof(int));
    f->chunks[f->count] = (short)chunk;
    f->kinds[f->count++] = (unsigned char)kind;
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

static void keep_front(ms_arena *arena, const front *f, ms_schedule *schedule)
{
    size_t count = (size_t)f->count;
    int *rows = MS_NEW_ARRAY(arena, (long)f->count * f->width, int);
    short *chunks = MS_NEW_ARRAY(arena, f->count, short);
    unsigned char *kinds = MS_NEW_ARRAY(arena, f->count, unsigned char);
    assert(f->rows != NULL); /* every rank has a backward */
    memcpy(rows, f->rows, count * (size_t)f->width * sizeof(int));
    memcpy(chunks, f->chunks, count * sizeof(short));
    memcpy(kinds, f->kinds, count);
    schedule->live = rows;
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
        walk_rank(schedule, rank, live, &f); /* leaves `live` at zero */
    }
    first_live[num_ranks] = f.count;
    keep_front(arena, &f, schedule);
    ms_arena_close(scratch);
    schedule->first_live = first_live;
}
