/* Internals shared by the files of the fake GPU. Everything is used with fake_lock
 * held. */
#ifndef MS_TESTS_SUPPORT_CUDA_FAKE_PRIV_H
#define MS_TESTS_SUPPORT_CUDA_FAKE_PRIV_H

#include "base/rng.h"
#include "tests/support/cuda_fake.h"
#include "tests/support/cuda_fake_numbers.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define FAKE_TEXT        256
#define FAKE_MAX_DEVICES 16

typedef struct fake_group fake_group;
typedef struct fake_item fake_item;

struct ms_cuda_device {
    ms_cuda_device *next;
    int ordinal;
    bool is_open;
    bool launch_failed; /* a kernel launch failed; the next check reports it once */
    bool has_failed;    /* lasts until the end */
    ms_cuda_gemm_choices *choices; /* GEMM algorithms; NULL: none */
    bool times_gemms;
};

/* A block of memory with pages of its own, whose access can be forbidden if it is device
 * memory. */
typedef struct fake_block {
    struct fake_block *next;
    ms_cuda_device *device;
    unsigned char *memory;
    size_t bytes, mapped_bytes;
    bool is_host, is_live;
} fake_block;

struct ms_cuda_stream {
    ms_cuda_stream *next;
    ms_cuda_device *device;
    bool is_open, is_urgent;
    int queue; /* hardware queue, if they are modelled */
    fake_item *first, *last;
    /* random; of all streams whose next work can run, that of highest priority runs */
    uint64_t priority;
};

struct ms_cuda_event {
    ms_cuda_event *next;
    ms_cuda_device *device;
    bool is_open, is_timed;
    long num_recorded, num_happened;
    double time_s; /* fake GPU's time of the last record that happened */
};

struct ms_cuda_comm {
    ms_cuda_comm *next;
    ms_cuda_device *device;
    fake_group *group;
    int rank, world_rank;
    int num_splits;
    int max_ctas;         /* most blocks of a kernel; 0: no limit is modelled */
    ms_cuda_comm *shared; /* communicator whose buffers it uses; NULL: its own */
    bool is_parent;       /* communicators split from it share its buffers */
    bool is_open, is_aborted;
    /* queue of its communications in the order of the calls, linked by next_of_comm */
    fake_item *first, *last;
};

/* One split of a communicator: the n-th split call of each of its ranks. */
typedef struct fake_split {
    struct fake_split *next;
    int number, num_arrived;
    bool is_done;
    int *color, *key;
    ms_cuda_comm **made; /* new communicator of each rank */
} fake_split;

/* All ranks of one communicator. */
struct fake_group {
    fake_group *next;
    ms_cuda_id id;
    bool has_id, has_failed;
    int size, num_arrived;
    ms_cuda_comm **members; /* indexed by rank */
    fake_split *splits;
};

typedef enum fake_kind {
    FAKE_LAUNCH,
    FAKE_COPY,
    FAKE_CLEAR,
    FAKE_GEMM,
    FAKE_RECORD,
    FAKE_WAIT,
    FAKE_COMMUNICATE
} fake_kind;

/* One piece of queued stream work. */
struct fake_item {
    fake_item *next, *next_of_comm;
    ms_cuda_stream *stream;
    fake_kind kind;
    long order; /* in which work is given */
    /* kernels: multiprocessors for all blocks, and held ones; steps until the end */
    int needs_sms, held_sms, turns;
    bool is_placed;
    void (*run)(void *state);
    /* launch: its argument; copy from pageable memory: values taken at the
     * call */
    void *state;
    void *to;
    const void *from;
    size_t bytes;
    ms_cuda_gemm product;
    ms_cuda_event *event;
    long number; /* number of the event's record to make or to wait for */
    ms_cuda_comm *comm;
    ms_cuda_collective *collectives;
    bool *is_done;
    int num_collectives;
};

typedef struct fake_world {
    ms_cuda_fake_options options;
    bool is_unprotected, is_alone;
    ms_rng rng;
    double clock_s;
    struct timespec last_change;
    /* fail_call: calls left until the failing one; 0: none fails */
    long num_calls[MS_NUM_FAKE_CALLS], fail_call[MS_NUM_FAKE_CALLS];
    long fail_work, fail_collective, num_defects;
    long num_given, num_urgent;
    int held_sms[FAKE_MAX_DEVICES], num_streams[FAKE_MAX_DEVICES];
    int lost_rank;
    char defect[FAKE_TEXT];
    double used_bytes[FAKE_MAX_DEVICES], most_bytes[FAKE_MAX_DEVICES];
    ms_cuda_device *devices;
    fake_block *blocks;
    ms_cuda_stream *streams;
    ms_cuda_event *events;
    ms_cuda_comm *comms;
    fake_group *groups;
} fake_world;

extern fake_world fake;
extern pthread_mutex_t fake_lock;
/* signalled when work is given or done, or ranks arrive or are aborted */
extern pthread_cond_t fake_change;

#define FAKE_NEW(type) ((type *)fake_zeroed(sizeof(type)))
void *fake_zeroed(size_t bytes); /* zeroed memory, never NULL */
void fake_note_defect(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Counts a call; returns whether it is to fail. */
bool fake_call(ms_cuda_fake_call call);
ms_status fake_failure(ms_ctx *cx, const char *what);
/* Whether a device is open and entered by the calling thread; notes a defect if not. */
bool fake_expect_entered(const ms_cuda_device *device, const char *what);
void fake_enter(ms_cuda_device *device);

/* ---- memory: cuda_fake_memory.c ---- */
/* Whether all bytes lie in one block that is in use; notes a defect if not. */
bool fake_expect_memory(const void *memory, size_t bytes, bool is_host, const char *what);
/* The block that contains an address; NULL: none. */
fake_block *fake_block_of(const void *memory, bool is_host);
void fake_protect_all(bool is_protected);
void fake_free_blocks(void);

/* ---- work: cuda_fake_work.c ---- */
/* Appends a piece of work to a stream. */
fake_item *fake_give(ms_cuda_stream *stream, fake_kind kind);
/* Does one piece of work of any stream; false: none can be done. */
bool fake_step(void);
/* Protects memory and wakes waiting threads; needed after fake_step, before the lock is
 * released. */
void fake_steps_end(void);
/* Waits a little for other threads. False: stuck_seconds have passed since `since` and
 * since any work was given or done. */
bool fake_pause(struct timespec since);
struct timespec fake_now(void);
bool fake_uses(const ms_cuda_device *device, const fake_block *block);
void fake_free_item(fake_item *item);

/* ---- multiprocessors and hardware queues: cuda_fake_sms.c ---- */
/* Whether the first work of a stream cannot be placed on the GPU yet. */
bool fake_is_held_up(const fake_item *item);
/* Whether work is still being placed. */
bool fake_places(const fake_item *item);
/* Places work, or lets a kernel go on; false: it is placed and has run. */
bool fake_place(fake_item *item);
void fake_release_sms(fake_item *item);

/* ---- streams and events: cuda_fake_streams.c ---- */
ms_status fake_open_stream(ms_ctx *cx, ms_cuda_device *device, bool urgent,
                           ms_cuda_stream **out);
void fake_close_stream(ms_cuda_stream *stream);
ms_status fake_open_event(ms_ctx *cx, ms_cuda_device *device, bool timed,
                          ms_cuda_event **out);
void fake_close_event(ms_cuda_event *event);
ms_status fake_record(ms_ctx *cx, ms_cuda_event *event, ms_cuda_stream *stream);
ms_status fake_wait(ms_ctx *cx, ms_cuda_stream *stream, ms_cuda_event *event);
ms_status fake_query(ms_ctx *cx, ms_cuda_event *event, bool *happened);
ms_status fake_elapsed(ms_ctx *cx, ms_cuda_event *from, ms_cuda_event *to,
                       double *seconds);
ms_status fake_finish(ms_ctx *cx, ms_cuda_stream *stream);
ms_status fake_copy(ms_ctx *cx, ms_cuda_stream *stream, void *to, const void *from,
                    size_t bytes, ms_cuda_direction direction);
ms_status fake_clear(ms_ctx *cx, ms_cuda_stream *stream, void *to, size_t bytes);
ms_status fake_product(ms_ctx *cx, ms_cuda_stream *stream, const ms_cuda_gemm *p);
ms_status fake_has_product(ms_ctx *cx, const ms_cuda_gemm *p, bool *has);

/* ---- communicators: cuda_fake_comm.c ---- */
/* Does one collective or send at the head of a stream for all ranks it concerns;
 * `try_only`: only whether that is possible. False: not possible yet. */
bool fake_communicate_step(fake_item *item, bool try_only);
void fake_free_groups(void);
ms_status fake_make_id(ms_ctx *cx, ms_cuda_id *out);
ms_status fake_open_comm(ms_ctx *cx, ms_cuda_device *device, const ms_cuda_id *id,
                         int rank, int size, ms_cuda_comm **out);
ms_status fake_split_comm(ms_ctx *cx, ms_cuda_comm *comm, const ms_cuda_split *how,
                          ms_cuda_comm **out);
ms_status fake_communicate(ms_ctx *cx, ms_cuda_comm *comm, ms_cuda_stream *stream,
                           const ms_cuda_collective *collectives, int num);
ms_status fake_check_comm(ms_ctx *cx, ms_cuda_comm *comm);
void fake_abort_comm(ms_cuda_comm *comm);
void fake_close_comm(ms_cuda_comm *comm);

/* ---- cuda_fake_memory.c ---- */
void *fake_allocate(ms_cuda_device *device, size_t bytes);
void fake_release(ms_cuda_device *device, void *memory);
void *fake_allocate_host(ms_cuda_device *device, size_t bytes);
void fake_release_host(ms_cuda_device *device, void *memory);

#endif
