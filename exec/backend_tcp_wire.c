#include "exec/backend_tcp_wire_priv.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READS_AT_ONCE 16 /* of one rank, before the others have their turn */

/* ---- the thread ---- */

static void wait_ready(ms_wire *wire)
{
    wire->ready[wire->size] = (struct pollfd){.fd = wire->wake[0], .events = POLLIN};
    pthread_mutex_lock(&wire->lock);
    for (long i = 0; i < wire->size; i++) {
        const ms_peer *p = &wire->peers[i];
        /* who says no more may still take what it is sent */
        int reads = atomic_load(&p->is_over) ? 0 : POLLIN;
        int events = reads | (p->first != NULL ? POLLOUT : 0);
        wire->ready[i] =
            (struct pollfd){.fd = events != 0 ? p->socket : -1, .events = (short)events};
    }
    pthread_mutex_unlock(&wire->lock);
    (void)poll(wire->ready, (nfds_t)wire->size + 1, -1);
}

static void *carry(void *state)
{
    ms_wire *wire = state;
    char bytes[64];
    while (!atomic_load(&wire->is_closing)) {
        wait_ready(wire);
        if (wire->ready[wire->size].revents != 0)
            while (read(wire->wake[0], bytes, sizeof bytes) > 0)
                continue;
        for (long i = 0; i < wire->size; i++) {
            ms_peer *p = &wire->peers[i];
            if ((wire->ready[i].revents & (POLLOUT | POLLHUP | POLLERR)) != 0) {
                pthread_mutex_lock(&wire->lock);
                ms_wire_send_waiting(p);
                pthread_mutex_unlock(&wire->lock);
            }
            bool may_read = !atomic_load(&p->is_over) &&
                            (wire->ready[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0;
            for (int n = 0; n < READS_AT_ONCE && may_read; n++)
                may_read = ms_wire_read(wire, p);
        }
    }
    return NULL;
}

/* Signals are for the thread that was there before. */
static int begin_thread(ms_wire *wire)
{
    sigset_t all, before;
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&wire->thread, NULL, carry, wire);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    wire->has_thread = error == 0;
    return error;
}

/* ---- open and close ---- */

static void end(ms_wire *wire)
{
    atomic_store(&wire->is_closing, true);
    if (wire->has_thread) {
        ms_wire_wake(wire);
        (void)pthread_join(wire->thread, NULL);
    }
    for (long i = 0; i < wire->size && wire->peers != NULL; i++) {
        ms_wire_drop_letters(&wire->peers[i]);
        if (wire->peers[i].parcel != NULL)
            ms_parcel_drop(wire->peers[i].parcel);
    }
    for (int i = 0; i < 2; i++)
        if (wire->wake[i] >= 0)
            (void)close(wire->wake[i]);
    pthread_mutex_destroy(&wire->lock);
    free(wire->ready);
    free(wire->peers);
    free(wire);
}

static bool open_pipe(ms_wire *wire)
{
    if (pipe(wire->wake) != 0) {
        wire->wake[0] = wire->wake[1] = -1;
        return false;
    }
    for (int i = 0; i < 2; i++)
        if (fcntl(wire->wake[i], F_SETFD, FD_CLOEXEC) != 0 ||
            fcntl(wire->wake[i], F_SETFL, O_NONBLOCK) != 0)
            return false;
    return true;
}

static bool open_peers(ms_wire *wire, const ms_rendezvous *meeting)
{
    wire->ready = calloc((size_t)wire->size + 1, sizeof *wire->ready);
    wire->peers = calloc((size_t)wire->size, sizeof *wire->peers);
    if (wire->ready == NULL || wire->peers == NULL)
        return false;
    for (long i = 0; i < wire->size; i++) {
        ms_peer *p = &wire->peers[i];
        p->rank = i;
        p->socket = meeting->sockets[i];
        p->end = &p->first;
        atomic_init(&p->is_over, i == wire->rank);
    }
    return true;
}

ms_status ms_wire_open(ms_ctx *cx, const ms_rendezvous *meeting, ms_pool *pool,
                       const ms_wire_listener *listener, ms_wire **out)
{
    ms_wire *wire = calloc(1, sizeof *wire);
    *out = NULL;
    if (wire == NULL)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "no memory is left");
    *wire = (ms_wire){.rank = meeting->rank,
                      .size = meeting->size,
                      .pool = pool,
                      .listener = *listener,
                      .wake = {-1, -1}};
    pthread_mutex_init(&wire->lock, NULL);
    atomic_init(&wire->is_closing, false);
    int error = open_peers(wire, meeting) ? 0 : ENOMEM;
    if (error == 0 && !open_pipe(wire))
        error = errno;
    if (error == 0)
        error = begin_thread(wire);
    if (error == 0) {
        *out = wire;
        return MS_OK;
    }
    end(wire);
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "no thread can listen to the other ranks: %s",
                   strerror(error));
}

static bool are_all_over(const ms_wire *wire)
{
    for (long i = 0; i < wire->size; i++)
        if (!atomic_load(&wire->peers[i].is_over))
            return false;
    return true;
}

/* A connection that is closed with something unread may take with it what the other
 * has not read. */
void ms_wire_close(ms_wire *wire, double seconds)
{
    if (wire == NULL)
        return;
    ms_wire_post_to_all(wire, MS_WIRE_LEAVES, 0);
    (void)ms_wire_flush(wire, seconds);
    for (long i = 0; i < wire->size; i++)
        if (i != wire->rank)
            (void)shutdown(wire->peers[i].socket, SHUT_WR);
    double until_s = ms_clock_s() + seconds;
    while (!are_all_over(wire) && ms_clock_s() < until_s)
        ms_wire_rest();
    end(wire);
}
