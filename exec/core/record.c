#include "exec/core/record.h"

#include <string.h>

/* Doubles the capacity of `slices`; the old array remains in the arena. */
static void grow_slices(ms_recorder *recorder)
{
    if (recorder->arena == NULL)
        recorder->arena = ms_arena_open();
    long room = recorder->room > 0 ? 2 * recorder->room : 1024;
    ms_recorded *slices = MS_NEW_ARRAY(recorder->arena, room, ms_recorded);
    if (recorder->num > 0)
        memcpy(slices, recorder->slices, (size_t)recorder->num * sizeof *slices);
    recorder->slices = slices;
    recorder->room = room;
}

void ms_recorder_add(ms_recorder *recorder, ms_recorded slice)
{
    if (recorder == NULL || !recorder->on)
        return;
    if (recorder->num == recorder->room)
        grow_slices(recorder);
    slice.action = recorder->action;
    slice.microbatch = recorder->microbatch;
    slice.stage = recorder->stage;
    recorder->slices[recorder->num++] = slice;
}

void ms_recorder_close(ms_recorder *recorder)
{
    if (recorder->arena != NULL)
        ms_arena_close(recorder->arena);
    *recorder = (ms_recorder){0};
}
