#include "exec/backends/crew.h"

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
    ms_crew *crew;
    long rank;
    ms_rank_main *main;
    ms_device_rank *device;
    void *state;
    ms_ctx cx;
    ms_status status;
    pthread_t thread;
} rank_thread;

struct ms_crew {
    const ms_backend_job *job;
    ms_crew_ops ops;
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

static void open_groups(ms_crew *crew)
{
    const ms_world *world = crew->job->world;
    crew->groups =
        MS_NEW_ARRAY(crew->arena, world->num_ranks * MS_NUM_TRAFFIC_GROUPS, rank_group);
    for (int group = 0; group < MS_NUM_TRAFFIC_GROUPS; group++) {
        rank_group **group_of_rank =
            MS_NEW_ARRAY(crew->arena, world->num_ranks, rank_group *);
        for (long rank = 0; rank < world->num_ranks; rank++) {
            const ms_members *members = &world->members[group][rank];
            if (group_of_rank[rank] != NULL)
                continue;
            rank_group *g = &crew->groups[crew->num_groups++];
            g->members = members;
            g->num_arrivals = MS_NEW_ARRAY(crew->arena, members->size, long);
            open_condition(&g->completed);
            for (int i = 0; i < members->size; i++)
                group_of_rank[members->ranks[i]] = g;
        }
        crew->group_of_rank[group] = group_of_rank;
    }
}

ms_crew *ms_crew_open(const ms_backend_job *job, ms_crew_ops ops)
{
    ms_arena *arena = ms_arena_open();
    ms_crew *crew = MS_NEW(arena, ms_crew);
    crew->arena = arena;
    crew->job = job;
    crew->ops = ops;
    crew->timeout_s = job->timeout_s > 0 ? job->timeout_s : MS_DEFAULT_TIMEOUT_S;
    atomic_init(&crew->failed_rank, -1);
    pthread_mutex_init(&crew->lock, NULL);
    crew->began_s = ms_clock_s();
    open_groups(crew);
    crew->boxes = MS_NEW_ARRAY(arena, job->world->num_ranks, mailbox);
    for (long rank = 0; rank < job->world->num_ranks; rank++) {
        crew->boxes[rank].end = &crew->boxes[rank].first;
        open_condition(&crew->boxes[rank].filled);
    }
    return crew;
}

static void release_posts(const ms_crew *crew, ms_post *posts, int num)
{
    for (int i = 0; i < num; i++) {
        if (crew->ops.release != NULL && posts[i].data != NULL)
            crew->ops.release(posts[i].data);
        posts[i] = (ms_post){0};
    }
}

void ms_crew_close(ms_crew *crew)
{
    for (int i = 0; i < crew->num_groups; i++) {
        rank_group *g = &crew->groups[i];
        for (ms_round *round = g->open; round != NULL; round = round->next)
            release_posts(crew, round->posts, g->members->size);
        pthread_cond_destroy(&g->completed);
    }
    for (long rank = 0; rank < crew->job->world->num_ranks; rank++) {
        for (message *l = crew->boxes[rank].first; l != NULL; l = l->next)
            release_posts(crew, &l->post, 1);
        pthread_cond_destroy(&crew->boxes[rank].filled);
    }
    pthread_mutex_destroy(&crew->lock);
    ms_arena_close(crew->arena);
}

bool ms_crew_carries(const ms_backend_job *job, long rank)
{
    return rank >= 0 && rank < job->world->num_ranks;
}

double ms_crew_elapsed_s(const ms_crew *crew)
{
    return ms_clock_s() - crew->began_s;
}

/* ---- failures ---- */

static void fail_locked(ms_crew *crew, long rank)
{
    if (atomic_load(&crew->failed_rank) >= 0)
        return;
    atomic_store(&crew->failed_rank, rank);
    for (int i = 0; i < crew->num_groups; i++)
        pthread_cond_broadcast(&crew->groups[i].completed);
    for (long i = 0; i < crew->job->world->num_ranks; i++)
        pthread_cond_broadcast(&crew->boxes[i].filled);
}

void ms_crew_fail(ms_crew *crew, long rank)
{
    pthread_mutex_lock(&crew->lock);
    fail_locked(crew, rank);
    pthread_mutex_unlock(&crew->lock);
}

ms_status ms_crew_check(ms_ctx *cx, const ms_crew *crew)
{
    long failed = atomic_load(&crew->failed_rank);
    if (failed < 0)
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "ended because rank %ld failed", failed);
}

/* Waits for a signal of `condition`; ETIMEDOUT if none comes by began_s + timeout_s. */
static int wait_since(ms_crew *crew, pthread_cond_t *condition, double began_s)
{
    double until_s = began_s + crew->timeout_s, whole_s = floor(until_s);
    const struct timespec until = {(time_t)whole_s, (long)((until_s - whole_s) * 1e9)};
    return pthread_cond_timedwait(condition, &crew->lock, &until);
}

/* ---- groups ---- */

static ms_round *new_round(ms_crew *crew, rank_group *g, long serial)
{
    ms_round *round = g->free;
    if (round == NULL) {
        round = MS_NEW(crew->arena, ms_round);
        round->group = g;
        round->posts = MS_NEW_ARRAY(crew->arena, g->members->size, ms_post);
    } else {
        g->free = round->next;
    }
    round->serial = serial;
    round->arrived = round->left = 0;
    round->complete = false;
    round->next = NULL;
    return round;
}

static ms_round *find_round(ms_crew *crew, rank_group *g, long serial)
{
    ms_round **at = &g->open;
    while (*at != NULL && (*at)->serial != serial)
        at = &(*at)->next;
    if (*at == NULL)
        *at = new_round(crew, g, serial);
    return *at;
}

ms_round *ms_crew_arrive(ms_crew *crew, long rank, ms_traffic_group group, ms_post post)
{
    rank_group *g = crew->group_of_rank[group][rank];
    int own = crew->job->world->members[group][rank].own, size = g->members->size;
    pthread_mutex_lock(&crew->lock);
    ms_round *round = find_round(crew, g, g->num_arrivals[own]++);
    round->posts[own] = post;
    bool is_last = ++round->arrived == size;
    pthread_mutex_unlock(&crew->lock);
    if (!is_last)
        return round;
    if (crew->ops.complete != NULL)
        crew->ops.complete(crew, round->posts, size);
    pthread_mutex_lock(&crew->lock);
    round->complete = true;
    pthread_cond_broadcast(&g->completed);
    pthread_mutex_unlock(&crew->lock);
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

static ms_status fail_waiting(ms_ctx *cx, ms_crew *crew, long rank,
                              const ms_transfer *transfer, const char *why)
{
    fail_locked(crew, rank);
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "waited %g s for %s: %s", crew->timeout_s,
                   ms_transfer_text(cx->arena, crew->job->world, transfer), why);
}

ms_status ms_crew_await(ms_ctx *cx, ms_crew *crew, long rank, ms_round *round,
                        const ms_transfer *transfer, const ms_post **posts)
{
    rank_group *g = round->group;
    double began_s = ms_clock_s();
    int rc = 0;
    pthread_mutex_lock(&crew->lock);
    ms_status status = ms_crew_check(cx, crew);
    while (!round->complete && status == MS_OK) {
        if (round->arrived == g->members->size)
            pthread_cond_wait(&g->completed, &crew->lock);
        else if (rc == ETIMEDOUT)
            status = fail_waiting(cx, crew, rank, transfer, absent_members(cx, round));
        else
            rc = wait_since(crew, &g->completed, began_s);
        if (status == MS_OK)
            status = ms_crew_check(cx, crew);
    }
    pthread_mutex_unlock(&crew->lock);
    *posts = round->posts;
    return status;
}

void ms_crew_leave(ms_crew *crew, ms_round *round)
{
    rank_group *g = round->group;
    pthread_mutex_lock(&crew->lock);
    if (++round->left == g->members->size) {
        ms_round **at = &g->open;
        while (*at != round)
            at = &(*at)->next;
        *at = round->next;
        release_posts(crew, round->posts, g->members->size);
        round->next = g->free;
        g->free = round;
    }
    pthread_mutex_unlock(&crew->lock);
}

/* ---- mailboxes ---- */

void ms_crew_send(ms_crew *crew, long from, long to, int tag, ms_post post)
{
    assert(to >= 0 && to < crew->job->world->num_ranks);
    mailbox *box = &crew->boxes[to];
    pthread_mutex_lock(&crew->lock);
    message *l = crew->free_messages;
    if (l == NULL)
        l = MS_NEW(crew->arena, message);
    else
        crew->free_messages = l->next;
    *l = (message){from, tag, post, NULL};
    *box->end = l;
    box->end = &l->next;
    pthread_cond_signal(&box->filled);
    pthread_mutex_unlock(&crew->lock);
}

static bool take_message(ms_crew *crew, mailbox *box, const ms_transfer *transfer,
                         ms_post *post)
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
    l->next = crew->free_messages;
    crew->free_messages = l;
    return true;
}

ms_status ms_crew_receive(ms_ctx *cx, ms_crew *crew, long rank,
                          const ms_transfer *transfer, ms_post *post)
{
    mailbox *box = &crew->boxes[rank];
    double began_s = ms_clock_s();
    int rc = 0;
    pthread_mutex_lock(&crew->lock);
    ms_status status = ms_crew_check(cx, crew);
    while (status == MS_OK && !take_message(crew, box, transfer, post)) {
        if (rc == ETIMEDOUT)
            status = fail_waiting(cx, crew, rank, transfer, "it was not sent");
        else
            rc = wait_since(crew, &box->filled, began_s);
        if (status == MS_OK)
            status = ms_crew_check(cx, crew);
    }
    pthread_mutex_unlock(&crew->lock);
    return status;
}

/* ---- threads ---- */

static void *run_rank(void *argument)
{
    rank_thread *t = argument;
    t->status = t->main(&t->cx, t->device, t->rank, t->state);
    if (t->status != MS_OK)
        ms_crew_fail(t->crew, t->rank);
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
static long start_threads(ms_crew *crew, rank_thread *threads)
{
    long num_ranks = crew->job->world->num_ranks, started = 0;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigset_t before;
    block_signals(&before);
    int rc = 0;
    for (; started < num_ranks && rc == 0; started += rc == 0)
        rc = pthread_create(&threads[started].thread, &attributes, run_rank,
                            &threads[started]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (rc != 0) {
        rank_thread *t = &threads[started];
        t->status = ms_fail(&t->cx, MS_EIO, MS_NOWHERE,
                            "cannot start a thread for each of %ld ranks: %s", num_ranks,
                            strerror(rc));
        ms_crew_fail(crew, started);
    }
    return started;
}

ms_status ms_crew_run(ms_ctx *cx, ms_crew *crew, ms_rank_main *main,
                      ms_device_rank *const *devices, void *state)
{
    long num_ranks = crew->job->world->num_ranks;
    rank_thread *threads = MS_NEW_ARRAY(crew->arena, num_ranks, rank_thread);
    for (long rank = 0; rank < num_ranks; rank++) {
        ms_ctx own = {.arena = ms_arena_open(), .verbosity = cx->verbosity};
        threads[rank] =
            (rank_thread){crew, rank, main, devices[rank], state, own, MS_OK, 0};
    }
    crew->began_s = ms_clock_s();
    long started = start_threads(crew, threads);
    for (long rank = 0; rank < started; rank++)
        pthread_join(threads[rank].thread, NULL);
    long failed = atomic_load(&crew->failed_rank);
    ms_status status = MS_OK;
    if (failed >= 0)
        status = ms_rank_failed(cx, failed, &threads[failed].cx, threads[failed].status);
    for (long rank = 0; rank < num_ranks; rank++)
        ms_arena_close(threads[rank].cx.arena);
    return status;
}
