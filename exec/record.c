#include "exec/record.h"

#include <stdlib.h>

void ms_recorder_add(ms_recorder *recorder, ms_recorded slice)
{
    if (recorder == NULL || !recorder->on)
        return;
    if (recorder->num == recorder->room) {
        long room = recorder->room > 0 ? 2 * recorder->room : 1024;
        ms_recorded *more =
            realloc(recorder->slices, (size_t)room * sizeof *recorder->slices);
        if (more == NULL)
            return; /* a shorter record, not a failed run */
        recorder->slices = more;
        recorder->room = room;
    }
    slice.action = recorder->action;
    slice.microbatch = recorder->microbatch;
    slice.stage = recorder->stage;
    recorder->slices[recorder->num++] = slice;
}

void ms_recorder_close(ms_recorder *recorder)
{
    free(recorder->slices);
    *recorder = (ms_recorder){0};
}
