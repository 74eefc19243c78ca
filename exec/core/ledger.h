/* A rank's allocated bytes by category, and those in host memory, which memory
 * predictions match to the byte. */
#ifndef MS_EXEC_CORE_LEDGER_H
#define MS_EXEC_CORE_LEDGER_H

#include "sim/step/rank_memory.h"

typedef struct ms_ledger_sample {
    double time_s;
    int action; /* index in the rank's list of schedule actions; -1 outside actions */
    double bytes[MS_NUM_MEMORY_CATEGORIES];
} ms_ledger_sample;

typedef struct ms_ledger {
    double now_bytes[MS_NUM_MEMORY_CATEGORIES];
    double now_total_bytes;
    /* bytes of packing buffers and kernels' scratch (in no category), now and at most */
    double workspace_bytes, workspace_peak_bytes;
    /* bytes that the plan keeps in host memory, now and at most, in no category */
    double host_bytes, host_peak_bytes;
    double peak_bytes;                           /* peak of all categories together */
    double peak_parts[MS_NUM_MEMORY_CATEGORIES]; /* bytes by category at that peak */
    double action_peak_bytes;                    /* peak since the current action began */
    double action_peak_parts[MS_NUM_MEMORY_CATEGORIES];
} ms_ledger;

void ms_ledger_add(ms_ledger *ledger, ms_memory_category part,
                   double bytes); /* negative if freed */
void ms_ledger_add_workspace(ms_ledger *ledger, double bytes);
void ms_ledger_add_host(ms_ledger *ledger, double bytes);
void ms_ledger_begin_action(ms_ledger *ledger);

#endif
