/* Fuzzes the reader of pipeline schedules in CSV: no crash, every refusal has a
 * message, and an accepted schedule, written as text, reads back as the same actions. */
#include "costmodel/schedule/schedule_csv.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_same(const ms_schedule_table *a, const ms_schedule_table *b)
{
    require(a->num_ranks == b->num_ranks && a->num_stages == b->num_stages &&
            a->num_microbatches == b->num_microbatches);
    for (int r = 0; r <= a->num_ranks; r++)
        require(a->first_action[r] == b->first_action[r]);
    for (int s = 0; s < a->num_stages; s++)
        require(a->rank_of_stage[s] == b->rank_of_stage[s]);
    for (int i = 0; i < a->first_action[a->num_ranks]; i++) {
        const ms_action *x = &a->actions[i], *y = &b->actions[i];
        require(x->kind == y->kind && x->stage == y->stage &&
                x->microbatch == y->microbatch &&
                x->backward_stage == y->backward_stage &&
                x->backward_microbatch == y->backward_microbatch);
    }
}

static void read_back(ms_ctx *cx, const ms_schedule *schedule)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    require(file != NULL);
    ms_schedule_csv_write(file, schedule);
    fclose(file);
    ms_schedule_shape again;
    require(ms_schedule_csv_read(cx, "again", text, length, &again) == MS_OK);
    require_same(schedule->shape.table, again.table);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_arena *arena = ms_arena_open();
    ms_ctx cx = {.arena = arena};
    ms_schedule_shape shape;
    const ms_schedule *schedule = NULL;
    bool opened =
        ms_schedule_csv_read(&cx, "fuzz", (const char *)data, size, &shape) == MS_OK &&
        ms_schedule_open(&cx, arena, &shape, MS_NOWHERE, &schedule) == MS_OK;
    require(opened == (cx.num_errors == 0));
    if (opened)
        read_back(&cx, schedule);
    ms_arena_close(arena);
    return 0;
}
