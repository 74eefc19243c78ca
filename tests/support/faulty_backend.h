/* A backend that forwards all calls to another one, except one call of one rank that
 * fails. The rank's calls are counted from 1: allocations, kernels, starts of transfers,
 * waits. */
#ifndef MS_TESTS_SUPPORT_FAULTY_BACKEND_H
#define MS_TESTS_SUPPORT_FAULTY_BACKEND_H

#include "exec/core/backend.h"

typedef struct ms_faulty {
    const ms_backend *inner;
    long rank;
    /* number of the call that fails (an allocation by returning NULL); 0: none */
    long fail_at;
    /* not NULL: the call sets this flag instead of failing */
    volatile int *interrupted;
    /* results of the last run: calls of `rank`, and whether call `fail_at` came */
    long num_calls;
    bool failed;
    ms_backend table;
    ms_array_ops arrays;
    ms_backend_job job; /* job of the inner backend */
} ms_faulty;

/* Wraps a job of `faulty->inner`; the job is then opened, run and closed as any other,
 * while `faulty` lives. A failing call reports, for example, "call 17 (all-gather
 * attention.query) was made to fail". */
void ms_faulty_wrap(ms_faulty *faulty, ms_backend_job *job);

#endif
