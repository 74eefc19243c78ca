/* What happened on a rank and when: one slice per kernel and transfer of the steps that
 * are measured. */
#ifndef MS_EXEC_RECORD_H
#define MS_EXEC_RECORD_H

#include "sim/graph.h"

typedef struct ms_recorded {
    unsigned char stream; /* ms_stream */
    unsigned char kind;   /* ms_task_kind */
    short stage;
    int microbatch;
    int action;       /* of the rank; -1: none */
    const char *name; /* of the node, or what is moved */
    double start_s, end_s;
    double predicted_s; /* NaN: not predicted */
    double bytes;       /* that a transfer moves; 0 for kernels */
    bool waits;         /* time in which compute waited for a transfer */
    bool goes_on;       /* more of what another slice of the name counts */
} ms_recorded;

typedef struct ms_recorder {
    bool on;
    long num, room;
    ms_recorded *slices;
    ms_arena *arena; /* theirs; NULL: none yet */
    /* what the next slices belong to */
    int action, microbatch;
    short stage;
} ms_recorder;

void ms_recorder_add(ms_recorder *recorder,
                     ms_recorded slice); /* fills in action, microbatch and stage */
void ms_recorder_close(ms_recorder *recorder);

#endif
