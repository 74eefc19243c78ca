/* Counts, before each backward, micro-batches between forward and backward and between I
 * and W, by class of chunks; keeps rows that can be a memory peak. */
#include "costmodel/schedule/schedule_priv.h"

#include <string.h>

typedef struct live_row {
    int *counts; /* (width) one row of ms_live_rows.counts; NULL: not allocated */
    short at_work;
    unsigned char kind;
} live_row;

/* Rows that no other row dominates. */
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

/* Adds a row, unless one of the others dominates it. */
static void add_to_front(front *f, const int *counts, int at_work, int kind)
{
    /* newest row first: the likeliest to dominate */
    for (int i = f->count - 1; i >= 0; i--)
        if (f->rows[i].at_work == at_work && f->rows[i].kind == kind &&
            is_covered(counts, f->rows[i].counts, f->width))
            return;
    int num_left = 0;
    for (int i = 0; i < f->count; i++) {
        live_row row = f->rows[i];
        if (row.at_work == at_work && row.kind == kind &&
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
    row->at_work = (short)at_work;
    row->kind = (unsigned char)kind;
}

/* Adds the rows of a rank with these actions. `live`: (width) zeros, which it is again at
 * the end. */
static void walk_rank(const ms_schedule *schedule, const int *class_of,
                      const ms_rank_actions *list, int *live, front *f)
{
    const ms_schedule_shape *shape = &schedule->shape;
    int *delayed = live + f->width / 2;
    for (int i = 0; i < list->num; i++) {
        const ms_action *a = &list->actions[i];
        int kind = a->kind, stage = a->stage;
        if (kind == MS_FORWARD || kind == MS_OVERLAP)
            live[class_of[ms_schedule_chunk(shape, stage)]]++;
        if (kind == MS_FORWARD)
            continue;
        if (kind == MS_OVERLAP) {
            stage = a->backward_stage;
            kind = MS_BACKWARD;
        }
        int at_work = class_of[ms_schedule_chunk(shape, stage)];
        add_to_front(f, live, at_work, kind);
        if (kind == MS_BACKWARD_WEIGHT) {
            delayed[at_work]--;
            continue;
        }
        live[at_work]--;
        delayed[at_work] += kind == MS_BACKWARD_INPUT;
    }
}

/* The rows of a front, with counts of `num_alike` micro-batches for each one. */
static ms_live_rows copy_front(ms_arena *arena, const front *f, int num_alike)
{
    int *counts = MS_NEW_ARRAY(arena, (long)f->count * f->width, int);
    short *at_work = MS_NEW_ARRAY(arena, f->count, short);
    unsigned char *kinds = MS_NEW_ARRAY(arena, f->count, unsigned char);
    for (int i = 0; i < f->count; i++) {
        for (int j = 0; j < f->width; j++)
            counts[(long)i * f->width + j] = num_alike * f->rows[i].counts[j];
        at_work[i] = f->rows[i].at_work;
        kinds[i] = f->rows[i].kind;
    }
    return (ms_live_rows){f->count, counts, at_work, kinds};
}

ms_live_rows ms_schedule_live_rows(ms_arena *arena, const ms_schedule *schedule,
                                   const ms_live_ranks *ranks)
{
    ms_arena *scratch = ms_arena_open();
    /* rows of one rank, which are few, and of all */
    front own = {.arena = scratch, .width = 2 * ranks->num_classes}, all = own;
    int *live = MS_NEW_ARRAY(scratch, own.width, int);
    ms_action_list room = {.arena = scratch};
    bool first_only = ms_schedule_traits_of(schedule->shape.kind).first_keeps_most;
    int end = ranks->first_rank + (first_only ? 1 : ranks->num_ranks);
    for (int rank = ranks->first_rank; rank < end; rank++) {
        ms_rank_actions list = ms_schedule_rank_actions(schedule, rank, &room);
        own.count = 0;
        walk_rank(schedule, ranks->class_of, &list, live, &own);
        for (int i = 0; i < own.count; i++)
            add_to_front(&all, own.rows[i].counts, own.rows[i].at_work, own.rows[i].kind);
    }
    ms_live_rows rows = copy_front(arena, &all, schedule->num_alike);
    ms_arena_close(scratch);
    return rows;
}

int ms_schedule_in_flight(const ms_schedule *schedule, int rank)
{
    ms_arena *scratch = ms_arena_open();
    ms_live_ranks ranks = {rank, 1, 1, MS_NEW_ARRAY(scratch, schedule->num_chunks, int)};
    ms_live_rows rows = ms_schedule_live_rows(scratch, schedule, &ranks);
    int most = 0;
    for (int i = 0; i < rows.num; i++) {
        int sum = rows.counts[2 * i] + rows.counts[2 * i + 1];
        most = sum > most ? sum : most;
    }
    ms_arena_close(scratch);
    return most;
}
