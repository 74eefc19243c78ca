/* A backend that does what another one does, but for one call that fails: allocations
 * (NULL), kernels, starts of transfers and waits of one rank are counted from 1. */
#ifndef MS_TESTS_SUPPORT_FAULTY_BACKEND_H
#define MS_TESTS_SUPPORT_FAULTY_BACKEND_H

#include "exec/core/backend.h"

typedef struct ms_faulty {
    const ms_backend *inner;
    long rank;
    long fail_at; /* 0: none fails */
    /* instead of failing the call sets it and goes on; NULL: it fails */
    volatile int *interrupted;
    /* results of the last run */
    long num_calls; /* of that rank */
    bool failed;    /* the call came */
    ms_backend table;
    ms_array_ops arrays;
    ms_backend_job job; /* the inner one */
} ms_faulty;

/* Makes `job` one of the faulty backend, around `faulty->inner`; to be opened, run and
 * closed as any other. `faulty` outlives the job. A call that fails says "call 17
 * (all-gather attention.query) was made to fail". */
void ms_faulty_wrap(ms_faulty *faulty, ms_backend_job *job);

#endif
