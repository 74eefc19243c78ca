/* Synchronization of ranks that run as threads of one process: groups for collectives,
 * mailboxes for messages. Each rank posts copies of its data (loop backend) or its clock
 * (null backend). An ms_round is one collective of a group: the n-th arrival
 * (ms_rank_threads_arrive) of each member belongs to round n. Arriving never waits;
 * ms_rank_threads_await waits until all members have arrived, a rank fails, or the
 * timeout passes. */
#ifndef MS_EXEC_BACKENDS_RANK_THREADS_H
#define MS_EXEC_BACKENDS_RANK_THREADS_H

#include "exec/core/backend.h"

/* Data or a number that a rank leaves for the other members of its group. */
typedef struct ms_post {
    void *data; /* once posted, freed by ms_rank_threads_ops.release */
    double number;
} ms_post;

/* The rank threads of one process, with their groups and mailboxes. */
typedef struct ms_rank_threads ms_rank_threads;
typedef struct ms_round ms_round;

/* Functions by which a backend processes posted data; each may be NULL. */
typedef struct ms_rank_threads_ops {
    /* Called by the last member to join a collective, before any member continues. */
    void (*complete)(const ms_rank_threads *threads, ms_post *posts, int size);
    /* Frees data of a collective that all members have left or that never completes. */
    void (*release)(void *data);
} ms_rank_threads_ops;

/* Makes groups and mailboxes for the ranks of `job`; to be closed before the job is. */
ms_rank_threads *ms_rank_threads_open(const ms_backend_job *job, ms_rank_threads_ops ops);
void ms_rank_threads_close(ms_rank_threads *threads);

/* Runs `main` for all ranks, each in its own thread with devices[rank], and waits for
 * them; at most once per ms_rank_threads. Returns the status of the first rank that failed and records its
 * first diagnostic in cx, prefixed by "rank 3: "; MS_EIO if a thread cannot start. The
 * contexts and arenas that `main` gets end with this call. */
ms_status ms_rank_threads_run(ms_ctx *cx, ms_rank_threads *threads, ms_rank_main *main,
                              ms_device_rank *const *devices, void *state);
/* Whether this process runs the rank: true for every rank of the job. */
bool ms_rank_threads_carries(const ms_backend_job *job, long rank);

double ms_rank_threads_elapsed_s(const ms_rank_threads *threads);

/* Marks a rank as failed: waiting ranks return MS_EIO; only the first failure is kept. */
void ms_rank_threads_fail(ms_rank_threads *threads, long rank);
/* MS_EIO if a rank has failed; ms_rank_threads_run does not show its diagnostic. */
ms_status ms_rank_threads_check(ms_ctx *cx, const ms_rank_threads *threads);

/* ---- groups ---- */
/* Enters the rank's next collective in the group and posts its data. Never waits. */
ms_round *ms_rank_threads_arrive(ms_rank_threads *threads, long rank,
                                 ms_traffic_group group, ms_post post);
/* Waits until all members have arrived at the collective; `posts` (group size) may be
 * read until the rank calls ms_rank_threads_leave. MS_EIO if a rank failed or did not
 * arrive in time: "waited 60 s for attention.query (all-gather over tp): rank 3 has not come". */
ms_status ms_rank_threads_await(ms_ctx *cx, ms_rank_threads *threads, long rank,
                                ms_round *round, const ms_transfer *transfer,
                                const ms_post **posts);
/* Ends a member's use of a collective; every member calls this, even without waiting. */
void ms_rank_threads_leave(ms_rank_threads *threads, ms_round *round);

/* ---- mailboxes ---- */
/* Posts a message for rank `to`. Never waits. */
void ms_rank_threads_send(ms_rank_threads *threads, long from, long to, int tag,
                          ms_post post);
/* Waits for the oldest message of transfer->peer with transfer->tag; its data then belong
 * to the caller. Fails as ms_rank_threads_await does. */
ms_status ms_rank_threads_receive(ms_ctx *cx, ms_rank_threads *threads, long rank,
                                  const ms_transfer *transfer, ms_post *post);

#endif
