/* Where the ranks of one process, a thread each, wait for each other: groups that meet,
 * and mailboxes. Backends differ in what they leave there: copies of data (loop) or
 * clocks (null).
 *
 * A meeting has rounds: the n-th arrival of each member of a group belongs to its round
 * n. Arriving never waits; a round is awaited, by those who want its result, until all
 * members have arrived. All waiting ends when a rank fails, or after the timeout. */
#ifndef MS_EXEC_MEETING_H
#define MS_EXEC_MEETING_H

#include "exec/backend.h"

/* What a member leaves for the others. */
typedef struct ms_post {
    void *data; /* owned by the crew from then on; freed by ms_crew_habits.release */
    double number;
} ms_post;

typedef struct ms_crew ms_crew;
typedef struct ms_round ms_round;

/* What a backend does with posts; each may be NULL. */
typedef struct ms_crew_habits {
    /* By the last member to arrive, before any other goes on: posts (size), in the order
     * of members. */
    void (*complete)(const ms_crew *crew, ms_post *posts, int size);
    /* of a round that all members have left, or that never ended */
    void (*release)(void *data);
    size_t stack_bytes; /* of a thread; 0: 16 MiB */
} ms_crew_habits;

/* The job outlives the crew. */
ms_crew *ms_crew_open(const ms_backend_job *job, ms_crew_habits habits);
void ms_crew_close(ms_crew *crew);

/* Runs `main` for all ranks and waits for them; devices[rank] is handed to it. The result is that
 * of the first rank to fail; its first diagnostic is recorded in cx, with "rank 3: " before it.
 * MS_EIO: a thread cannot be started. The context of a rank, with its arena, ends with this call. A
 * crew runs once. */
ms_status ms_crew_run(ms_ctx *cx, ms_crew *crew, ms_rank_main *main,
                      ms_device_rank *const *devices, void *state);
/* Seconds since run began, by CLOCK_MONOTONIC. */
double ms_crew_elapsed_s(const ms_crew *crew);

/* The rank has failed: whoever waits, now or later, gets MS_EIO. Only the first failure counts. */
void ms_crew_fail(ms_crew *crew, long rank);
/* MS_EIO, with a diagnostic that is not shown, if a rank has failed. */
ms_status ms_crew_check(ms_ctx *cx, const ms_crew *crew);

/* ---- groups ---- */
/* The rank's next round in the transfer's group. Never waits. */
ms_round *ms_crew_arrive(ms_crew *crew, long rank, ms_traffic_group group, ms_post post);
/* Waits until all members have arrived; then `posts` (size) are theirs, to be read until the rank
 * leaves. MS_EIO: a rank failed, or did not come in time: "waited 60 s for attention.query (all-
 * gather over tp): rank 3 has not come". */
ms_status ms_crew_await(ms_ctx *cx, ms_crew *crew, long rank, ms_round *round,
                        const ms_transfer *transfer, const ms_post **posts);
/* Every member leaves each round once, awaited or not. */
void ms_crew_leave(ms_crew *crew, ms_round *round);

/* ---- mailboxes ---- */
/* Never waits. */
void ms_crew_send(ms_crew *crew, long from, long to, int tag, ms_post post);
/* The oldest post from transfer->peer with transfer->tag, which now is the caller's. MS_EIO as
 * ms_crew_await. */
ms_status ms_crew_receive(ms_ctx *cx, ms_crew *crew, long rank,
                          const ms_transfer *transfer, ms_post *post);

#endif
