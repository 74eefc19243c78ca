/* Time records of a rank: one slice per kernel and transfer of the measured steps. */
#ifndef MS_EXEC_CORE_RECORD_H
#define MS_EXEC_CORE_RECORD_H

#include "sim/engine/graph.h"

typedef struct ms_recorded {
    unsigned char stream; /* an ms_stream */
    unsigned char kind;   /* an ms_task_kind */
    short stage;
    int microbatch;
    int action;       /* index in the rank's list of schedule actions; -1 if none */
    const char *name; /* name of the layer program's node, or of the transfer */
    double start_s, end_s;
    double predicted_s; /* NaN if not predicted */
    double bytes;       /* bytes that a transfer moves; 0 for kernels */
    bool waits; /* whether the slice is time that compute spends waiting for a transfer */
    bool goes_on; /* another slice of the same transfer counts it */
    /* whether the slice is the time in which a transfer moves, kernels or not beside it;
     * it counts no time of the rank */
    bool moves;
} ms_recorded;

typedef struct ms_recorder {
    bool on;
    long num, room;
    ms_recorded *slices;
    ms_arena *arena;        /* owns the slices; NULL before the first slice */
    int action, microbatch; /* recorded in each slice added from now on */
    short stage;
} ms_recorder;

void ms_recorder_add(ms_recorder *recorder,
                     ms_recorded slice); /* fills in action, microbatch and stage */
void ms_recorder_close(ms_recorder *recorder);

#endif
