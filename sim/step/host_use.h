/* How busy a rank's host is in a step, and which passes wait for it. [2.5] of
 * docs/formulas. */
#ifndef MS_SIM_STEP_HOST_USE_H
#define MS_SIM_STEP_HOST_USE_H

#include "sim/step/planned.h"

typedef struct ms_host_use {
    bool is_chosen;  /* the plan states how its kernels are launched */
    double launches; /* calls by which the host starts work on its device, in a step */
    double launch_s; /* seconds that these take the host */
    /* seconds of a step that embedding, layers and head wait for the host, by pass: for its
     * launches, or for copies of activations to its memory and back */
    double wait_s[MS_NUM_BLOCK_KINDS][MS_NUM_BILL_PASSES];
} ms_host_use;

/* The use of the host of a pipeline rank by its forwards and backwards; gathers and
 * reductions of data parallelism and the optimizer are left out. */
ms_host_use ms_host_use_of(const ms_planned *planned, int rank);

#endif
