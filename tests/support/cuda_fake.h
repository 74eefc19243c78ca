/* A device in ordinary memory behind exec/cuda/cuda_driver.h. Streams keep their work until
 * something waits (finish, a copy to pageable memory; query does a little of it), and
 * then it is done in an order drawn by a seed among all that streams and events allow:
 * where a wait for an event is missing, a test gets wrong numbers, for some seeds.
 *
 * - Memory of the device cannot be touched but by work: elsewhere a read or a write ends
 *   the program (segmentation fault). Whoever waits does the work of all ranks.
 * - Copies from pageable memory take it at the call, those from allocate_host when their
 *   turn comes.
 * - Memory holds NaNs after allocate and after release. The bytes behind a block are
 *   looked at when it is released.
 * - Ranks in threads share the devices. A collective runs when all ranks of its
 *   communicator have it at the head of their streams; a send when its peer has its
 *   receive there.
 * - Without a stream (NULL) copies, clears, products and emulated launches are done at
 *   once, in any memory: for tests of single operations.
 * - Times of events count pieces of work, MS_CUDA_FAKE_WORK_S each.
 *
 * A defect is a use that a GPU would answer with wrong numbers, a crash or a hang: memory
 * released while work uses it, closed objects, memory that is not the device's, a thread
 * that has not entered the device, collectives that do not match, waiting for ever. It
 * ends the program, or is recorded where a test asks for that. */
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
    MS_FAKE_LAUNCH, /* ms_cuda_fake_enqueue */
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
    int num_devices;     /* 0: 1 */
    double memory_bytes; /* of each; 0: 1 GiB */
    int nccl_version;    /* as facts have it */
    int capability;      /* of compute, ten times the major number and the minor; 0: 90 */
    const char *missing; /* find fails and says this; NULL: it finds all devices */
    bool record_defects; /* otherwise they end the program */
    /* of the clock on the wall without any work that could be done: a defect (open_comm
     * and split: MS_EIO alone); 0: 20 */
    double stuck_seconds;
} ms_cuda_fake_options;

/* Forgets everything, what is open too, and begins anew. Before the first use. NULL: all
 * as 0. No other thread uses the driver meanwhile. */
void ms_cuda_fake_begin(const ms_cuda_fake_options *options);
/* Frees everything. A defect: what has not been closed or released. */
void ms_cuda_fake_end(void);

extern const ms_cuda_driver ms_cuda_fake_driver;

/* Work of a launch: `run(state)` once its turn comes, which frees `state`. That is from
 * malloc: where the work is dropped after a failure, the device frees it. */
void ms_cuda_fake_enqueue(ms_cuda_stream *stream, void (*run)(void *state), void *state);

/* ---- failures ---- */

/* The `number`-th call from now on (1: the next) fails: MS_EIO, or NULL. A launch says so
 * in the next check. RELEASE, ABORT_COMM and ranges cannot fail. */
void ms_cuda_fake_fail(ms_cuda_fake_call call, long number);
/* The `number`-th piece of work from now on fails while it runs: its device does nothing
 * more, and check, finish, query and further work say so. */
void ms_cuda_fake_fail_work(long number);
/* The `number`-th collective or send from now on never ends; check_comm of its ranks says
 * so. */
void ms_cuda_fake_fail_collective(long number);
/* Collectives of the rank that has this number in the communicator that open_comm made
 * never begin, until they are aborted. -1: no rank. */
void ms_cuda_fake_lose_rank(int rank);

/* ---- what happened ---- */

long ms_cuda_fake_calls(ms_cuda_fake_call call);
long ms_cuda_fake_num_defects(void);
/* The first; "" without. Valid until the next begin. */
const char *ms_cuda_fake_defect(void);
/* Pieces of work that no one has waited for. */
long ms_cuda_fake_num_pending(void);
/* Bytes of a device in use now, and the most since begin. */
double ms_cuda_fake_used_bytes(int ordinal);
double ms_cuda_fake_most_bytes(int ordinal);

#endif
