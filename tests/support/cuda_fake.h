/* A fake GPU in host memory behind the interface exec/cuda/cuda_driver.h, for tests
 * without a GPU. Streams keep their work until something waits for it (finish, or a copy
 * to pageable memory; a query does a little work). Then the work is done in a random
 * order drawn by a seed, among all orders that streams and events allow: where the tested
 * code lacks a wait for an event, some seeds give wrong numbers.
 *
 * - Device memory may only be accessed by work: any other access ends the program
 *   (segmentation fault). A thread that waits does the work of all ranks.
 * - Copies from pageable memory take the values at the call, copies from allocate_host
 *   memory when they run.
 * - Memory holds NaNs after allocate and after release. Guard bytes behind a block are
 *   checked when it is released.
 * - Ranks in threads share the devices. A collective runs once all ranks of its
 *   communicator have it at the head of their streams; a send once the peer has its
 *   receive there.
 * - Without a stream (NULL) copies, clears, products and emulated launches are done at
 *   once, in any memory: for tests of single operations.
 * - With a number of multiprocessors, kernels hold some while they run, and those of
 *   communicators until the kernels of all their ranks run; with a number of hardware
 *   queues, work waits in them for all work before it. Kernels of communicators that share
 *   buffers run one after the other in the order of the calls.
 * - Times of events count pieces of work, MS_CUDA_FAKE_WORK_S seconds each.
 *
 * A defect is a use to which a GPU would answer with wrong numbers, a crash or a hang:
 * memory released while work uses it, closed objects, memory that is not the device's,
 * a thread that has not entered the device, collectives that do not match, waiting for
 * ever. A defect ends the program, or is recorded (ms_cuda_fake_options). */
#ifndef MS_TESTS_SUPPORT_CUDA_FAKE_H
#define MS_TESTS_SUPPORT_CUDA_FAKE_H

#include "exec/cuda/cuda_driver.h"

#include <stdint.h>

#define MS_CUDA_FAKE_WORK_S 1e-6

typedef enum ms_cuda_fake_call {
    MS_FAKE_FIND,
    MS_FAKE_OPEN,
    MS_FAKE_DESCRIBE,
    MS_FAKE_MEMORY,
    MS_FAKE_ALLOCATE,
    MS_FAKE_RELEASE,
    MS_FAKE_ALLOCATE_HOST,
    MS_FAKE_RELEASE_HOST,
    MS_FAKE_OPEN_STREAM,
    MS_FAKE_OPEN_EVENT,
    MS_FAKE_RECORD,
    MS_FAKE_WAIT,
    MS_FAKE_QUERY,
    MS_FAKE_ELAPSED,
    MS_FAKE_FINISH,
    MS_FAKE_CHECK,
    MS_FAKE_LAUNCH, /* ms_cuda_fake_enqueue, the launch of an emulated kernel */
    MS_FAKE_COPY,
    MS_FAKE_CLEAR,
    MS_FAKE_GEMM,
    MS_FAKE_MAKE_ID,
    MS_FAKE_OPEN_COMM,
    MS_FAKE_SPLIT,
    MS_FAKE_COMMUNICATE,
    MS_FAKE_CHECK_COMM,
    MS_FAKE_ABORT_COMM,
    MS_FAKE_PUSH_RANGE,
    MS_FAKE_POP_RANGE,
    MS_NUM_FAKE_CALLS
} ms_cuda_fake_call;

typedef struct ms_cuda_fake_options {
    uint64_t seed;
    int num_devices;     /* 0: one device */
    double memory_bytes; /* memory of each device; 0: 1 GiB */
    int nccl_version;    /* NCCL version that the driver reports */
    int capability;      /* compute capability: 10 * major + minor; 0: 90 */
    /* Multiprocessors of each device, and hardware queues to which its streams are given in
     * turn (CUDA_DEVICE_MAX_CONNECTIONS). 0: as many as work needs. */
    int num_sms, num_connections;
    const char *missing; /* not NULL: finding devices fails with this message */
    /* true: defects are recorded; false: the first defect ends the program */
    bool record_defects;
    /* wall-clock time without any work that could be done after which waiting is a defect
     * (open_comm and split only fail with MS_EIO); 0: 20 */
    double stuck_seconds;
} ms_cuda_fake_options;

/* Forgets all devices and everything open, and begins anew; NULL: all options 0. Needed
 * before the first use. No other thread may use the driver meanwhile. */
void ms_cuda_fake_begin(const ms_cuda_fake_options *options);
/* Frees everything. Objects that are still open and memory not released are defects. */
void ms_cuda_fake_end(void);

/* The calling thread alone uses the driver from now on: waiting for what none of the work
 * can do is a defect at once. */
void ms_cuda_fake_alone(void);

extern const ms_cuda_driver ms_cuda_fake_driver;

/* Queues a launch: calls run(state) when its turn comes, which must free `state` (from
 * malloc). If the work is dropped after a failure, the fake GPU frees `state`. */
void ms_cuda_fake_enqueue(ms_cuda_stream *stream, void (*run)(void *state), void *state);

/* ---- failures ---- */

/* Makes the `number`-th call of a kind from now on (1: the next) fail with MS_EIO or
 * NULL; the failure of a launch is reported by the next check. RELEASE, ABORT_COMM and
 * ranges cannot fail. */
void ms_cuda_fake_fail(ms_cuda_fake_call call, long number);
/* Makes the `number`-th piece of work from now on fail: its device does no more work, and
 * check, finish, query and later work report the failure. */
void ms_cuda_fake_fail_work(long number);
/* Makes the `number`-th collective or send from now on never end; check_comm of its ranks
 * reports the failure. */
void ms_cuda_fake_fail_collective(long number);
/* Collectives of this rank, numbered as in open_comm's communicator, never begin until
 * they are aborted. -1: no rank is lost. */
void ms_cuda_fake_lose_rank(int rank);

/* ---- counts and defects ---- */

long ms_cuda_fake_calls(ms_cuda_fake_call call);
long ms_cuda_fake_num_defects(void);
/* Message of the first defect; "": none. Valid until the next begin. */
const char *ms_cuda_fake_defect(void);
/* Number of streams opened since begin that are urgent. */
long ms_cuda_fake_num_urgent(void);
/* Number of queued pieces of work that are not yet done. */
long ms_cuda_fake_num_pending(void);
/* Bytes of a device in use: now, and the most since begin. */
double ms_cuda_fake_used_bytes(int ordinal);
double ms_cuda_fake_most_bytes(int ordinal);

#endif
