/* What a rank has allocated, by the categories of a prediction: checked against the
 * memory model to the byte. */
#ifndef MS_EXEC_LEDGER_H
#define MS_EXEC_LEDGER_H

#include "sim/memory.h"

typedef struct ms_ledger_sample {
    double time_s;
    int action; /* index into the rank's actions; -1: before the first, or after the last */
    double bytes[MS_NUM_MEMORY_PARTS];
} ms_ledger_sample;

typedef struct ms_ledger {
    double now_bytes[MS_NUM_MEMORY_PARTS];
    double now_total_bytes;
    /* packing buffers and kernels' scratch: no category of a prediction */
    double workspace_bytes, workspace_peak_bytes;
    double peak_bytes;                      /* of the total, without workspace */
    double peak_parts[MS_NUM_MEMORY_PARTS]; /* at that instant */
    double action_peak_bytes;               /* since the action began */
    double action_peak_parts[MS_NUM_MEMORY_PARTS];
} ms_ledger;

void ms_ledger_add(ms_ledger *ledger, ms_memory_part part,
                   double bytes); /* negative: freed */
void ms_ledger_add_workspace(ms_ledger *ledger, double bytes);
void ms_ledger_begin_action(ms_ledger *ledger);

#endif
