/* How many micro-batches each chunk of a rank holds between forward and backward. Counts only grow at
 * forwards, so the candidates are the counts just before a backward; of these the ones that no other
 * exceeds in every chunk are kept. */
#include "costmodel/schedule_priv.h"

#include <assert.h>
#include <string.h>

/* A growing set of vectors, none of which is below or equal to another. */
typedef struct front {
    ms_arena *arena;
    int width;
    int count;
    int capacity;
    int *rows; /* (capacity, width) */
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
    int capacity = f->capacity == 0 ? 16 : 2 * f->capacity;
    int *rows = MS_NEW_ARRAY(f->arena, (long)capacity * f->width, int);
    if (f->count > 0)
        memcpy(rows, f->rows, (size_t)f->count * (size_t)f->width * sizeof(int));
    f->rows = rows;
    f->capacity = capacity;
}

static int *front_row(const front *f, int i)
{
    return f->rows + (long)i * f->width;
}

/* Adds a vector from row `from` on: rows before belong to other ranks. */
static void add_to_front(front *f, int from, const int *row)
{
    size_t row_bytes = (size_t)f->width * sizeof(int);
    for (int i = f->count - 1; i >= from;
         i--) /* the newest rows are the likeliest to repeat */
        if (is_covered(row, front_row(f, i), f->width))
            return;
    int kept = from;
    for (int i = from; i < f->count; i++)
        if (!is_covered(front_row(f, i), row, f->width))
            memmove(front_row(f, kept++), front_row(f, i), row_bytes);
    f->count = kept;
    if (f->count == f->capacity)
        grow_front(f);
    memcpy(front_row(f, f->count++), row, row_bytes);
}

static void walk_rank(const ms_schedule *schedule, int rank, int *live, front *f)
{
    int from = f->count;
    const ms_action *list = schedule->actions + (long)rank * schedule->actions_per_rank;
    bool grew = false;
    for (int i = 0; i < schedule->actions_per_rank; i++) {
        int chunk = list[i].stage / schedule->shape.num_ranks;
        if (list[i].kind == MS_FORWARD) {
            live[chunk]++;
            grew = true;
            continue;
        }
        if (grew)
            add_to_front(f, from, live);
        live[chunk]--;
        grew = false;
    }
}

void ms_schedule_find_live(ms_arena *arena, ms_schedule *schedule)
{
    int num_ranks = schedule->shape.num_ranks, width = schedule->shape.virtual_stages;
    int *first_live = MS_NEW_ARRAY(arena, num_ranks + 1, int);
    ms_arena *scratch = ms_arena_open();
    front f = {.arena = scratch, .width = width};
    int *live = MS_NEW_ARRAY(scratch, width, int);
    for (int rank = 0; rank < num_ranks; rank++) {
        first_live[rank] = f.count;
        walk_rank(schedule, rank, live, &f); /* leaves `live` at zero */
    }
    first_live[num_ranks] = f.count;
    int *rows = MS_NEW_ARRAY(arena, (long)f.count * width, int);
    assert(f.rows != NULL); /* every rank has a backward */
    memcpy(rows, f.rows, (size_t)f.count * (size_t)width * sizeof(int));
    ms_arena_close(scratch);
    schedule->first_live = first_live;
    schedule->live = rows;
}
