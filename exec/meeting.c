#include "exec/meeting.h"

#include "base/clock.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Address space, used as it is touched. */
#define DEFAULT_STACK_BYTES ((size_t)16 << 20)

/* Of one group of ranks. */
typedef struct gathering {
    const ms_members *members;
    long *num_arrivals;    /* (size) of each member */
    ms_round *open, *free; /* rounds that not all have left; rounds to be used again */
    pthread_cond_t completed;
} gathering;

struct ms_round {
    gathering *of;
    long serial;
    int arrived, left;
    bool complete;
    ms_round *next;
    ms_post *posts; /* (size) */
};

typedef struct letter {
    long from;
    int tag;
    ms_post post;
    struct letter *next;
} letter;

typedef struct mailbox {
    letter *first, **end;
    pthread_cond_t filled;
} mailbox;

/* One rank and its thread. */
typedef struct seat {
    ms_crew *crew;
    long rank;
    ms_rank_main *main;
    ms_device_rank *device;
    void *state;
    ms_ctx cx;
    ms_status status;
    pthread_t thread;
} seat;

struct ms_crew {
    const ms_backend_job *job;
    ms_crew_habits habits;
    double timeout_s;
    double began_s;
    ms_arena *arena;
    pthread_mutex_t lock; /* of all below, and of the arena while ranks run */
    gathering *all;
    int num_gatherings;
    gathering **of_rank[MS_NUM_TRAFFIC_GROUPS]; /* (num_ranks) each */
    mailbox *boxes;                             /* (num_ranks) */
    letter *free_letters;
    atomic_long failed_rank; /* the first; -1: none. Written under the lock */
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

static void open_gatherings(ms_crew *crew)
{
    const ms_world *world = crew->job->world;
    crew->all =
        MS_NEW_ARRAY(crew->arena, world->num_ranks * MS_NUM_TRAFFIC_GROUPS, gathering);
    for (int group = 0; group < MS_NUM_TRAFFIC_GROUPS; group++) {
        gathering **of_rank = MS_NEW_ARRAY(crew->arena, world->num_ranks, gathering *);
        for (long rank = 0; rank < world->num_ranks; rank++) {
            const ms_members *members = &world->members[group][rank];
            if (of_rank[rank] != NULL)
                continue;
            gathering *g = &crew->all[crew->num_gatherings++];
            g->members = members;
            g->num_arrivals = MS_NEW_ARRAY(crew->arena, members->size, long);
            open_condition(&g->completed);
            for (int i = 0; i < members->size; i++)
                of_rank[members->ranks[i]] = g;
        }
        crew->of_rank[group] = of_rank;
    }
}

ms_crew *ms_crew_open(const ms_backend_job *job, ms_crew_habits habits)
{
    ms_arena *arena = ms_arena_open();
    ms_crew *crew = MS_NEW(arena, ms_crew);
    crew->arena = arena;
    crew->job = job;
    crew->habits = habits;
    crew->timeout_s = job->timeout_s > 0 ? job->timeout_s : MS_DEFAULT_TIMEOUT_S;
    atomic_init(&crew->failed_rank, -1);
    pthread_mutex_init(&crew->lock, NULL);
    crew->began_s = ms_clock_s();
    open_gatherings(crew);
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
        if (crew->habits.release != NULL && posts[i].data != NULL)
            crew->habits.release(posts[i].data);
        posts[i] = (ms_post){0};
    }
}

void ms_crew_close(ms_crew *crew)
{
    for (int i = 0; i < crew->num_gatherings; i++) {
        gathering *g = &crew->all[i];
        for (ms_round *round = g->open; round != NULL; round = round->next)
            release_posts(crew, round->posts, g->members->size);
        pthread_cond_destroy(&g->completed);
    }
    for (long rank = 0; rank < crew->job->world->num_ranks; rank++) {
        for (letter *l = crew->boxes[rank].first; l != NULL; l = l->next)
            release_posts(crew, &l->post, 1);
        pthread_cond_destroy(&crew->boxes[rank].filled);
    }
    pthread_mutex_destroy(&crew->lock);
    ms_arena_close(crew->arena);
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
    for (int i = 0; i < crew->num_gatherings; i++)
        pthread_cond_broadcast(&crew->all[i].completed);
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

/* Until it is signalled. ETIMEDOUT: the time since began_s is over. */
static int wait_since(ms_crew *crew, pthread_cond_t *condition, double began_s)
{
    double until_s = began_s + crew->timeout_s, whole_s = floor(until_s);
    const struct timespec until = {(time_t)whole_s, (long)((until_s - whole_s) * 1e9)};
    return pthread_cond_timedwait(condition, &crew->lock, &until);
}

/* ---- groups ---- */

static ms_round *new_round(ms_crew *crew, gathering *g, long serial)
{
    ms_round *round = g->free;
    if (round == NULL) {
        round = MS_NEW(crew->arena, ms_round);
        round->of = g;
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

static ms_round *find_round(ms_crew *crew, gathering *g, long serial)
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
    gathering *g = crew->of_rank[group][rank];
    int own = crew->job->world->members[group][rank].own, size = g->members->size;
    pthread_mutex_lock(&crew->lock);
    ms_round *round = find_round(crew, g, g->num_arrivals[own]++);
    round->posts[own] = post;
    bool is_last = ++round->arrived == size;
    pthread_mutex_unlock(&crew->lock);
    if (!is_last)
        return round;
    if (crew->habits.complete != NULL)
        crew->habits.complete(crew, round->posts, size);
    pthread_mutex_lock(&crew->lock);
    round->complete = true;
    pthread_cond_broadcast(&g->completed);
    pthread_mutex_unlock(&crew->lock);
    return round;
}

/* "rank 3 has not come", "ranks 3, 5 have not come" */
static const char *absent_members(ms_ctx *cx, const ms_round *round)
{
    const char *text = NULL;
    int num = 0;
    for (int i = 0; i < round->of->members->size; i++) {
        if (round->of->num_arrivals[i] > round->serial)
            continue;
        long rank = round->of->members->ranks[i];
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
    gathering *g = round->of;
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
    gathering *g = round->of;
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
    letter *l = crew->free_letters;
    if (l == NULL)
        l = MS_NEW(crew->arena, letter);
    else
        crew->free_letters = l->next;
    *l = (letter){from, tag, post, NULL};
    *box->end = l;
    box->end = &l->next;
    pthread_cond_signal(&box->filled);
    pthread_mutex_unlock(&crew->lock);
}

static bool take(ms_crew *crew, mailbox *box, const ms_transfer *transfer, ms_post *post)
{
    letter **at = &box->first;
    while (*at != NULL && ((*at)->from != transfer->peer || (*at)->tag != transfer->tag))
        at = &(*at)->next;
    letter *l = *at;
    if (l == NULL)
        return false;
    *at = l->next;
    if (box->end == &l->next)
        box->end = at;
    *post = l->post;
    l->next = crew->free_letters;
    crew->free_letters = l;
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
    while (status == MS_OK && !take(crew, box, transfer, post)) {
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

static void *sit(void *argument)
{
    seat *s = argument;
    s->status = s->main(&s->cx, s->device, s->rank, s->state);
    if (s->status != MS_OK)
        ms_crew_fail(s->crew, s->rank);
    return NULL;
}

/* Signals go to the main thread, but for those that tell of a defect in the thread itself. */
static void block_signals(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&blocked, own[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

/* How many were started: all, unless the system refuses one, which then has failed. */
static long start_threads(ms_crew *crew, seat *seats)
{
    long num_ranks = crew->job->world->num_ranks, started = 0;
    size_t stack = crew->habits.stack_bytes;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack > 0 ? stack : DEFAULT_STACK_BYTES);
    sigset_t before;
    block_signals(&before);
    int rc = 0;
    for (; started < num_ranks && rc == 0; started += rc == 0)
        rc = pthread_create(&seats[started].thread, &attributes, sit, &seats[started]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (rc != 0) {
        seat *s = &seats[started];
        s->status = ms_fail(&s->cx, MS_EIO, MS_NOWHERE,
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
    seat *seats = MS_NEW_ARRAY(crew->arena, num_ranks, seat);
    for (long rank = 0; rank < num_ranks; rank++) {
        ms_ctx own = {.arena = ms_arena_open(), .verbosity = cx->verbosity};
        seats[rank] = (seat){crew, rank, main, devices[rank], state, own, MS_OK, 0};
    }
    crew->began_s = ms_clock_s();
    long started = start_threads(crew, seats);
    for (long rank = 0; rank < started; rank++)
        pthread_join(seats[rank].thread, NULL);
    long failed = atomic_load(&crew->failed_rank);
    ms_status status = MS_OK;
    if (failed >= 0)
        status = ms_rank_failed(cx, failed, &seats[failed].cx, seats[failed].status);
    for (long rank = 0; rank < num_ranks; rank++)
        ms_arena_close(seats[rank].cx.arena);
    return status;
}
