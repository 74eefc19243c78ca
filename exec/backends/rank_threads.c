#include "exec/backends/rank_threads.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define STACK_BYTES ((size_t)16 << 20) /* stack size of a rank's thread */

typedef struct rank_group {
    const ms_members *members;
    long *num_arrivals;    /* (group size) how many collectives each member has started */
    ms_round *open, *free; /* open: rounds that a member still uses; free: spare */
    pthread_cond_t completed;
} rank_group;

struct ms_round {
    rank_group *group;
    long serial;
    int arrived, left;
    bool complete;
    ms_round *next;
    ms_post *posts; /* (size of the group) data that each member posted */
};

typedef struct message {
    long from;
    int tag;
    ms_post post;
    struct message *next;
} message;

typedef struct mailbox {
    message *first, **end;
    pthread_cond_t filled;
} mailbox;

typedef struct rank_thread {
    ms_rank_threads *threads;
    long rank;
    ms_rank_main *main;
    ms_device_rank *device;
    void *state;
    ms_ctx cx;
    ms_status status;
    pthread_t thread;
} rank_thread;

struct ms_rank_threads {
    const ms_backend_job *job;
    ms_rank_threads_ops ops;
    double timeout_s;
    double began_s;
    ms_arena *arena;
    pthread_mutex_t lock; /* protects the fields below, and `arena` while ranks run */
    rank_group *groups;
    int num_groups;
    /* [kind of group][rank]: the group of that kind to which the rank belongs */
    rank_group **group_of_rank[MS_NUM_TRAFFIC_GROUPS];
    mailbox *boxes; /* (num_ranks) messages that wait for a rank */
    message *free_messages;
    atomic_long failed_rank; /* first rank to fail, -1 if none; written under `lock` */
};

/* ---- open and close ---- */

static void open_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void open_groups(ms_rank_threads *threads)
{
    const ms_world *world = threads->job->world;
    threads->groups = MS_NEW_ARRAY(threads->arena,
                                   world->num_ranks * MS_NUM_TRAFFIC_GROUPS, rank_group);
    for (int group = 0; group < MS_NUM_TRAFFIC_GROUPS; group++) {
        rank_group **group_of_rank =
            MS_NEW_ARRAY(threads->arena, world->num_ranks, rank_group *);
        for (long rank = 0; rank < world->num_ranks; rank++) {
            const ms_members *members = &world->members[group][rank];
            if (group_of_rank[rank] != NULL)
                continue;
            rank_group *g = &threads->groups[threads->num_groups++];
            g->members = members;
            g->num_arrivals = MS_NEW_ARRAY(threads->arena, members->size, long);
            open_condition(&g->completed);
            for (int i = 0; i < members->size; i++)
                group_of_rank[members->ranks[i]] = g;
        }
        threads->group_of_rank[group] = group_of_rank;
    }
}

ms_rank_threads *ms_rank_threads_open(const ms_backend_job *job, ms_rank_threads_ops ops)
{
    ms_arena *arena = ms_arena_open();
    ms_rank_threads *threads = MS_NEW(arena, ms_rank_threads);
    threads->arena = arena;
    threads->job = job;
    threads->ops = ops;
    threads->timeout_s = job->timeout_s > 0 ? job->timeout_s : MS_DEFAULT_TIMEOUT_S;
    atomic_init(&threads->failed_rank, -1);
    pthread_mutex_init(&threads->lock, NULL);
    threads->began_s = ms_clock_s();
    open_groups(threads);
    threads->boxes = MS_NEW_ARRAY(arena, job->world->num_ranks, mailbox);
    for (long rank = 0; rank < job->world->num_ranks; rank++) {
        threads->boxes[rank].end = &threads->boxes[rank].first;
        open_condition(&threads->boxes[rank].filled);
    }
    return threads;
}

static void release_posts(const ms_rank_threads *threads, ms_post *posts, int num)
{
    for (int i = 0; i < num; i++) {
        if (threads->ops.release != NULL && posts[i].data != NULL)
            threads->ops.release(posts[i].data);
        posts[i] = (ms_post){0};
    }
}

void ms_rank_threads_close(ms_rank_threads *threads)
{
    for (int i = 0; i < threads->num_groups; i++) {
        rank_group *g = &threads->groups[i];
        for (ms_round *round = g->open; round != NULL; round = round->next)
            release_posts(threads, round->posts, g->members->size);
        pthread_cond_destroy(&g->completed);
    }
    for (long rank = 0; rank < threads->job->world->num_ranks; rank++) {
        for (message *l = threads->boxes[rank].first; l != NULL; l = l->next)
            release_posts(threads, &l->post, 1);
        pthread_cond_destroy(&threads->boxes[rank].filled);
    }
    pthread_mutex_destroy(&threads->lock);
    ms_arena_close(threads->arena);
}

bool ms_rank_threads_carries(const ms_backend_job *job, long rank)
{
    return rank >= 0 && rank < job->world->num_ranks;
}

double ms_rank_threads_elapsed_s(const ms_rank_threads *threads)
{
    return ms_clock_s() - threads->began_s;
}

/* ---- failures ---- */

static void fail_locked(ms_rank_threads *threads, long rank)
{
    if (atomic_load(&threads->failed_rank) >= 0)
        return;
    atomic_store(&threads->failed_rank, rank);
    for (int i = 0; i < threads->num_groups; i++)
        pthread_cond_broadcast(&threads->groups[i].completed);
    for (long i = 0; i < threads->job->world->num_ranks; i++)
        pthread_cond_broadcast(&threads->boxes[i].filled);
}

void ms_rank_threads_fail(ms_rank_threads *threads, long rank)
{
    pthread_mutex_lock(&threads->lock);
    fail_locked(threads, rank);
    pthread_mutex_unlock(&threads->lock);
}

ms_status ms_rank_threads_check(ms_ctx *cx, const ms_rank_threads *threads)
{
    long failed = atomic_load(&threads->failed_rank);
    if (failed < 0)
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "ended because rank %ld failed", failed);
}

/* Waits for a signal of `condition`; ETIMEDOUT if none comes by began_s + timeout_s. */
static int wait_since(ms_rank_threads *threads, pthread_cond_t *condition, double began_s)
{
    double until_s = began_s + threads->timeout_s, whole_s = floor(until_s);
    const struct timespec until = {(time_t)whole_s, (long)((until_s - whole_s) * 1e9)};
    return pthread_cond_timedwait(condition, &threads->lock, &until);
}

/* ---- groups ---- */

static ms_round *new_round(ms_rank_threads *threads, rank_group *g, long serial)
{
    ms_round *round = g->free;
    if (round == NULL) {
        round = MS_NEW(threads->arena, ms_round);
        round->group = g;
        round->posts = MS_NEW_ARRAY(threads->arena, g->members->size, ms_post);
    } else {
        g->free = round->next;
    }
    round->serial = serial;
    round->arrived = round->left = 0;
    round->complete = false;
    round->next = NULL;
    return round;
}

static ms_round *find_round(ms_rank_threads *threads, rank_group *g, long serial)
{
    ms_round **at = &g->open;
    while (*at != NULL && (*at)->serial != serial)
        at = &(*at)->next;
    if (*at == NULL)
        *at = new_round(threads, g, serial);
    return *at;
}

ms_round *ms_rank_threads_arrive(ms_rank_threads *threads, long rank,
                                 ms_traffic_group group, ms_post post)
{
    rank_group *g = threads->group_of_rank[group][rank];
    int own = threads->job->world->members[group][rank].own, size = g->members->size;
    pthread_mutex_lock(&threads->lock);
    ms_round *round = find_round(threads, g, g->num_arrivals[own]++);
    round->posts[own] = post;
    bool is_last = ++round->arrived == size;
    pthread_mutex_unlock(&threads->lock);
    if (!is_last)
        return round;
    if (threads->ops.complete != NULL)
        threads->ops.complete(threads, round->posts, size);
    pthread_mutex_lock(&threads->lock);
    round->complete = true;
    pthread_cond_broadcast(&g->completed);
    pthread_mutex_unlock(&threads->lock);
    return round;
}

/* Members that have not started the collective, as text: "ranks 3, 5 have not come". */
static const char *absent_members(ms_ctx *cx, const ms_round *round)
{
    const char *text = NULL;
    int num = 0;
    for (int i = 0; i < round->group->members->size; i++) {
        if (round->group->num_arrivals[i] > round->serial)
            continue;
        long rank = round->group->members->ranks[i];
        text = num++ == 0 ? ms_arena_printf(cx->arena, "%ld", rank)
                          : ms_arena_printf(cx->arena, "%s, %ld", text, rank);
    }
    return ms_arena_printf(
        cx->arena, num == 1 ? "rank %s has not come" : "ranks %s have not come", text);
}

static ms_status fail_waiting(ms_ctx *cx, ms_rank_threads *threads, long rank,
                              const ms_transfer *transfer, const char *why)
{
    fail_locked(threads, rank);
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "waited %g s for %s: %s", threads->timeout_s,
                   ms_transfer_text(cx->arena, threads->job->world, transfer), why);
}

ms_status ms_rank_threads_await(ms_ctx *cx, ms_rank_threads *threads, long rank,
                                ms_round *round, const ms_transfer *transfer,
                                const ms_post **posts)
{
    rank_group *g = round->group;
    double began_s = ms_clock_s();
    int rc = 0;
    pthread_mutex_lock(&threads->lock);
    ms_status status = ms_rank_threads_check(cx, threads);
    while (!round->complete && status == MS_OK) {
        if (round->arrived == g->members->size)
            pthread_cond_wait(&g->completed, &threads->lock);
        else if (rc == ETIMEDOUT)
            status = fail_waiting(cx, threads, rank, transfer, absent_members(cx, round));
        else
            rc = wait_since(threads, &g->completed, began_s);
        if (status == MS_OK)
            status = ms_rank_threads_check(cx, threads);
    }
    pthread_mutex_unlock(&threads->lock);
    *posts = round->posts;
    return status;
}

void ms_rank_threads_leave(ms_rank_threads *threads, ms_round *round)
{
    rank_group *g = round->group;
    pthread_mutex_lock(&threads->lock);
    if (++round->left == g->members->size) {
        ms_round **at = &g->open;
        while (*at != round)
            at = &(*at)->next;
        *at = round->next;
        release_posts(threads, round->posts, g->members->size);
        round->next = g->free;
        g->free = round;
    }
    pthread_mutex_unlock(&threads->lock);
}

/* ---- mailboxes ---- */

void ms_rank_threads_send(ms_rank_threads *threads, long from, long to, int tag,
                          ms_post post)
{
    assert(to >= 0 && to < threads->job->world->num_ranks);
    mailbox *box = &threads->boxes[to];
    pthread_mutex_lock(&threads->lock);
    message *l = threads->free_messages;
    if (l == NULL)
        l = MS_NEW(threads->arena, message);
    else
        threads->free_messages = l->next;
    *l = (message){from, tag, post, NULL};
    *box->end = l;
    box->end = &l->next;
    pthread_cond_signal(&box->filled);
    pthread_mutex_unlock(&threads->lock);
}

static bool take_message(ms_rank_threads *threads, mailbox *box,
                         const ms_transfer *transfer, ms_post *post)
{
    message **at = &box->first;
    while (*at != NULL && ((*at)->from != transfer->peer || (*at)->tag != transfer->tag))
        at = &(*at)->next;
    message *l = *at;
    if (l == NULL)
        return false;
    *at = l->next;
    if (box->end == &l->next)
        box->end = at;
    *post = l->post;
    l->next = threads->free_messages;
    threads->free_messages = l;
    return true;
}

ms_status ms_rank_threads_receive(ms_ctx *cx, ms_rank_threads *threads, long rank,
                                  const ms_transfer *transfer, ms_post *post)
{
    mailbox *box = &threads->boxes[rank];
    double began_s = ms_clock_s();
    int rc = 0;
    pthread_mutex_lock(&threads->lock);
    ms_status status = ms_rank_threads_check(cx, threads);
    while (status == MS_OK && !take_message(threads, box, transfer, post)) {
        if (rc == ETIMEDOUT)
            status = fail_waiting(cx, threads, rank, transfer, "it was not sent");
        else
            rc = wait_since(threads, &box->filled, began_s);
        if (status == MS_OK)
            status = ms_rank_threads_check(cx, threads);
    }
    pthread_mutex_unlock(&threads->lock);
    return status;
}

/* ---- threads ---- */

static void *run_rank(void *argument)
{
    rank_thread *t = argument;
    t->status = t->main(&t->cx, t->device, t->rank, t->state);
    if (t->status != MS_OK)
        ms_rank_threads_fail(t->threads, t->rank);
    return NULL;
}

/* Blocks all signals in the calling thread except those of its own errors (SIGSEGV). */
static void block_signals(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

/* Starts a thread per rank until the system refuses one, whose rank then fails. Returns
 * the number of threads started. */
static long start_threads(ms_rank_threads *threads, rank_thread *ranks)
{
    long num_ranks = threads->job->world->num_ranks, started = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigset_t before;
    block_signals(&before);
    int rc = 0;
    for (; started < num_ranks && rc == 0; started += rc == 0)
        rc = pthread_create(&ranks[started].thread, &attributes, run_rank,
                            &ranks[started]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (rc != 0) {
        rank_thread *t = &ranks[started];
        t->status = ms_fail(&t->cx, MS_EIO, MS_NOWHERE,
                            "cannot start a thread for each of %ld ranks: %s", num_ranks,
                            strerror(rc));
        ms_rank_threads_fail(threads, started);
    }
    return started;
}

ms_status ms_rank_threads_run(ms_ctx *cx, ms_rank_threads *threads, ms_rank_main *main,
                              ms_device_rank *const *devices, void *state)
{
    long num_ranks = threads->job->world->num_ranks;
    rank_thread *ranks = MS_NEW_ARRAY(threads->arena, num_ranks, rank_thread);
    for (long rank = 0; rank < num_ranks; rank++) {
        ms_ctx own = {.arena = ms_arena_open(), .verbosity = cx->verbosity};
        ranks[rank] =
            (rank_thread){threads, rank, main, devices[rank], state, own, MS_OK, 0};
    }
    threads->began_s = ms_clock_s();
    long started = start_threads(threads, ranks);
    for (long rank = 0; rank < started; rank++)
        pthread_join(ranks[rank].thread, NULL);
    long failed = atomic_load(&threads->failed_rank);
    ms_status status = MS_OK;
    if (failed >= 0)
        status = ms_rank_failed(cx, failed, &ranks[failed].cx, ranks[failed].status);
    for (long rank = 0; rank < num_ranks; rank++)
        ms_arena_close(ranks[rank].cx.arena);
    return status;
}
