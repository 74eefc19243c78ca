/* Synchronization of the ranks of one process, one thread each: groups and mailboxes.
 * Ranks post copies of data (loop) or clocks (null). A group meets in rounds: the n-th
 * arrival of each member belongs to round n. Arriving never waits; whoever needs a
 * round's result waits until all members have arrived, a rank fails, or the timeout
 * passes. */
#ifndef MS_EXEC_BACKENDS_CREW_H
#define MS_EXEC_BACKENDS_CREW_H

#include "exec/core/backend.h"

/* Data or a number that a member leaves for the others. */
typedef struct ms_post {
    void *data; /* owned by the crew once posted; freed by the release function */
    double number;
} ms_post;

/* The rank threads of one process with their groups and mailboxes. */
typedef struct ms_crew ms_crew;
typedef struct ms_round ms_round;

/* Functions of a backend for posts; each may be NULL. */
typedef struct ms_crew_ops {
    /* Called by the last member to arrive, before any continues. */
    void (*complete)(const ms_crew *crew, ms_post *posts, int size);
    /* Frees data of a round that all members have left, or that is never completed. */
    void (*release)(void *data);
} ms_crew_ops;

/* A crew for the ranks of `job`, which must outlive it. */
ms_crew *ms_crew_open(const ms_backend_job *job, ms_crew_ops ops);
void ms_crew_close(ms_crew *crew);

/* Runs `main` for all ranks with devices[rank] and waits for them; once per crew. Returns
 * the status of the first rank to fail and records its first diagnostic, prefixed by
 * "rank 3: ", in cx; MS_EIO if a thread cannot be started. Ranks' contexts and arenas end
 * with the call. */
ms_status ms_crew_run(ms_ctx *cx, ms_crew *crew, ms_rank_main *main,
                      ms_device_rank *const *devices, void *state);
/* Whether the rank exists: one process carries all. */
bool ms_crew_carries(const ms_backend_job *job, long rank);

/* Seconds since ms_crew_run began, by CLOCK_MONOTONIC. */
double ms_crew_elapsed_s(const ms_crew *crew);

/* Marks a rank as failed, so that all waiting returns MS_EIO; only the first counts. */
void ms_crew_fail(ms_crew *crew, long rank);
/* MS_EIO if a rank has failed, with a diagnostic that is not shown. */
ms_status ms_crew_check(ms_ctx *cx, const ms_crew *crew);

/* ---- groups ---- */
/* Enters the rank's next round in the group and posts its data. Never waits. */
ms_round *ms_crew_arrive(ms_crew *crew, long rank, ms_traffic_group group, ms_post post);
/* Waits for all members; `posts` (size) may be read until the rank leaves the round.
 * MS_EIO if a rank failed or did not arrive in time: "waited 60 s for attention.query
 * (all-gather over tp): rank 3 has not come". */
ms_status ms_crew_await(ms_ctx *cx, ms_crew *crew, long rank, ms_round *round,
                        const ms_transfer *transfer, const ms_post **posts);
/* Every member must leave each round once, whether it waited for it or not. */
void ms_crew_leave(ms_crew *crew, ms_round *round);

/* ---- mailboxes ---- */
/* Posts a message for rank `to`. Never waits. */
void ms_crew_send(ms_crew *crew, long from, long to, int tag, ms_post post);
/* Waits for the oldest message with the transfer's peer and tag; its data then belong to
 * the caller. Errors as for ms_crew_await. */
ms_status ms_crew_receive(ms_ctx *cx, ms_crew *crew, long rank,
                          const ms_transfer *transfer, ms_post *post);

#endif
