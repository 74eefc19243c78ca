#include "exec/rendezvous.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GREETING_S 5.0 /* for whoever comes to say who it is, and to reach one address */
#define LOOK_UP_S  0.1 /* at an interrupt */

/* ---- sockets that never block ---- */

/* None is left to a child. -1: errno says why. */
static int prepare(int socket)
{
    if (socket >= 0 && fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 &&
        fcntl(socket, F_SETFL, O_NONBLOCK) == 0)
        return socket;
    int error = errno;
    if (socket >= 0)
        (void)close(socket);
    errno = error;
    return -1;
}

static int open_socket(const struct addrinfo *at)
{
    return prepare(socket(at->ai_family, at->ai_socktype, 0));
}

static bool is_transient(int error)
{
    return error == EINTR || error == EAGAIN || error == EWOULDBLOCK;
}

static bool is_interrupted(const ms_rendezvous *r)
{
    return r->interrupted != NULL && *r->interrupted != 0;
}

/* Looks up between: another thread may have taken the signal. MS_EIO, without a message: it is too late. */
static ms_status wait_ready(const ms_rendezvous *r, int socket, short what,
                            double until_s)
{
    struct pollfd ready = {.fd = socket, .events = what};
    for (;;) {
        double left_s = until_s - ms_clock_s();
        if (is_interrupted(r))
            return MS_EINTERRUPTED;
        if (left_s <= 0.0)
            return MS_EIO;
        int num =
            poll(&ready, 1,
                 left_s < LOOK_UP_S ? (int)(1e3 * left_s) + 1 : (int)(1e3 * LOOK_UP_S));
        if (num > 0)
            return MS_OK;
        if (num < 0 && !is_transient(errno))
            return MS_EIO;
    }
}

/* All of a text, sent or received. MS_EIO, without a message: the other is gone or silent. */
static ms_status put_text(const ms_rendezvous *r, int socket,
                          const char text[MS_RENDEZVOUS_TEXT], double until_s)
{
    for (size_t done = 0; done < MS_RENDEZVOUS_TEXT;) {
        MS_TRY(wait_ready(r, socket, POLLOUT, until_s));
        ssize_t num = send(socket, text + done, MS_RENDEZVOUS_TEXT - done, MSG_NOSIGNAL);
        if (num < 0 && !is_transient(errno))
            return MS_EIO;
        done += num > 0 ? (size_t)num : 0;
    }
    return MS_OK;
}

static ms_status get_text(const ms_rendezvous *r, int socket,
                          char text[MS_RENDEZVOUS_TEXT], double until_s)
{
    for (size_t done = 0; done < MS_RENDEZVOUS_TEXT;) {
        MS_TRY(wait_ready(r, socket, POLLIN, until_s));
        ssize_t num = recv(socket, text + done, MS_RENDEZVOUS_TEXT - done, 0);
        if (num == 0 || (num < 0 && !is_transient(errno)))
            return MS_EIO;
        done += num > 0 ? (size_t)num : 0;
    }
    text[MS_RENDEZVOUS_TEXT - 1] = '\0';
    return MS_OK;
}

/* ---- rank 0 ---- */

/* The number after `word`, where the text goes on with it; -1: none. */
static long take_number(const char **text, const char *word)
{
    size_t length = strlen(word);
    const char *digits = *text + length;
    if (strncmp(*text, word, length) != 0 || *digits < '0' || *digits > '9')
        return -1;
    char *end;
    long value = strtol(digits, &end, 10);
    *text = end;
    return value;
}

/* A process that says which rank of how many it is; -1: something else. */
static long greeted_by(const ms_rendezvous *r, int socket, double until_s, long *size)
{
    char text[MS_RENDEZVOUS_TEXT];
    const char *at = text;
    double soon_s = ms_clock_s() + GREETING_S;
    if (get_text(r, socket, text, soon_s < until_s ? soon_s : until_s) != MS_OK)
        return -1;
    long rank = take_number(&at, "meshsim rank ");
    *size = take_number(&at, " of ");
    return *size > 0 ? rank : -1;
}

static ms_status missing_ranks(ms_ctx *cx, const ms_rendezvous *r)
{
    long num = 0, first = 0;
    for (long rank = r->size - 1; rank > 0; rank--) {
        num += r->sockets[rank] < 0;
        first = r->sockets[rank] < 0 ? rank : first;
    }
    return ms_fail(cx, MS_EIO, MS_NOWHERE,
                   "waited %g s for all ranks: %ld of %ld did not come, rank %ld first",
                   r->timeout_s, num, r->size, first);
}

/* Who is no rank of this run, or one that is here, is sent away. */
static ms_status take_one(ms_ctx *cx, ms_rendezvous *r, int listener, double until_s,
                          long *num)
{
    long size = 0;
    int socket = prepare(accept(listener, NULL, NULL));
    if (socket < 0 && (is_transient(errno) || errno == ECONNABORTED))
        return MS_OK;
    if (socket < 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank 0 cannot take the others: %s",
                       strerror(errno));
    long rank = greeted_by(r, socket, until_s, &size);
    if (rank > 0 && rank < r->size && size == r->size && r->sockets[rank] < 0) {
        r->sockets[rank] = socket;
        ++*num;
        return MS_OK;
    }
    (void)close(socket);
    if (rank < 0 || size == r->size)
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE,
                   "rank %ld was started as one of %ld, rank 0 as one of %ld", rank, size,
                   r->size);
}

static ms_status take_all(ms_ctx *cx, ms_rendezvous *r, int listener)
{
    double until_s = ms_clock_s() + r->timeout_s;
    for (long num = 1; num < r->size;) {
        ms_status status = wait_ready(r, listener, POLLIN, until_s);
        if (status != MS_OK)
            return status == MS_EINTERRUPTED ? status : missing_ranks(cx, r);
        MS_TRY(take_one(cx, r, listener, until_s, &num));
    }
    return MS_OK;
}

static ms_status listen_at(ms_ctx *cx, const ms_meeting_point *at,
                           const struct addrinfo *found, int *out)
{
    int yes = 1, error = 0;
    for (; found != NULL; found = found->ai_next) {
        *out = open_socket(found);
        error = errno;
        if (*out < 0)
            continue;
        (void)setsockopt(*out, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (bind(*out, found->ai_addr, found->ai_addrlen) == 0 && listen(*out, 128) == 0)
            return MS_OK;
        error = errno;
        (void)close(*out);
    }
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank 0 cannot listen at %s, port %ld: %s",
                   at->address, at->port, strerror(error));
}

/* ---- others ---- */

/* MS_EIO: not now; `error` says why. */
static ms_status connect_to(const ms_rendezvous *r, const struct addrinfo *at, int socket,
                            double until_s, int *error)
{
    socklen_t length = sizeof *error;
    double soon_s = ms_clock_s() + GREETING_S;
    *error = connect(socket, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (*error != EINPROGRESS && *error != EINTR)
        return *error == 0 ? MS_OK : MS_EIO;
    *error = ETIMEDOUT;
    MS_TRY(wait_ready(r, socket, POLLOUT, soon_s < until_s ? soon_s : until_s));
    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, error, &length) != 0)
        *error = errno;
    return *error == 0 ? MS_OK : MS_EIO;
}

static ms_status reach(const ms_rendezvous *r, const struct addrinfo *found,
                       double until_s, int *out, int *error)
{
    ms_status status = MS_EIO;
    for (; found != NULL && status == MS_EIO; found = found->ai_next) {
        *out = open_socket(found);
        *error = errno;
        if (*out < 0)
            continue;
        status = connect_to(r, found, *out, until_s, error);
        if (status != MS_OK)
            (void)close(*out);
    }
    return status;
}

/* Rank 0 may begin later. */
static ms_status reach_later(ms_ctx *cx, const ms_rendezvous *r,
                             const ms_meeting_point *at, const struct addrinfo *found,
                             int *out)
{
    double until_s = ms_clock_s() + r->timeout_s;
    const struct timespec pause = {.tv_nsec = 50000000};
    int error = 0;
    for (;;) {
        ms_status status = reach(r, found, until_s, out, &error);
        if (status == MS_OK || is_interrupted(r))
            return status == MS_OK ? status : MS_EINTERRUPTED;
        if (ms_clock_s() > until_s) {
            return ms_fail(cx, MS_EIO, MS_NOWHERE,
                           "waited %g s for rank 0, which does not listen at %s, port "
                           "%ld: %s",
                           r->timeout_s, at->address, at->port, strerror(error));
        }
        nanosleep(&pause, NULL);
    }
}

static ms_status come(ms_ctx *cx, ms_rendezvous *r, const ms_meeting_point *at,
                      const struct addrinfo *found)
{
    char text[MS_RENDEZVOUS_TEXT] = "";
    MS_TRY(reach_later(cx, r, at, found, &r->sockets[0]));
    snprintf(text, sizeof text, "meshsim rank %ld of %ld", r->rank, r->size);
    ms_status status = put_text(r, r->sockets[0], text, ms_clock_s() + r->timeout_s);
    if (status != MS_EIO)
        return status;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank 0 at %s, port %ld, does not listen",
                   at->address, at->port);
}

/* ---- both ---- */

static ms_status meet(ms_ctx *cx, ms_rendezvous *r, const ms_meeting_point *at,
                      const struct addrinfo *found)
{
    int listener = -1;
    if (r->rank > 0)
        return come(cx, r, at, found);
    MS_TRY(listen_at(cx, at, found, &listener));
    ms_status status = take_all(cx, r, listener);
    (void)close(listener);
    return status;
}

ms_status ms_rendezvous_open(ms_ctx *cx, const ms_launch *launch,
                             const ms_meeting_point *at, double timeout_s,
                             volatile const int *interrupted, ms_rendezvous *out)
{
    struct addrinfo *found, want = {.ai_socktype = SOCK_STREAM};
    const char *port = ms_arena_printf(cx->arena, "%ld", at->port);
    *out = (ms_rendezvous){.rank = launch->rank,
                           .size = launch->size,
                           .timeout_s = timeout_s,
                           .interrupted = interrupted,
                           .sockets = MS_NEW_ARRAY(cx->arena, launch->size, int)};
    for (long i = 0; i < launch->size; i++)
        out->sockets[i] = -1;
    int error = getaddrinfo(at->address, port, &want, &found);
    if (error != 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "MASTER_ADDR \"%s\" is not found: %s",
                       at->address, gai_strerror(error));
    ms_status status = meet(cx, out, at, found);
    freeaddrinfo(found);
    if (status != MS_OK)
        ms_rendezvous_close(out);
    return status;
}

ms_status ms_rendezvous_tell(ms_ctx *cx, const ms_rendezvous *r, long rank,
                             char text[MS_RENDEZVOUS_TEXT])
{
    double until_s = ms_clock_s() + r->timeout_s;
    ms_status status = r->rank == 0 ? put_text(r, r->sockets[rank], text, until_s)
                                    : get_text(r, r->sockets[0], text, until_s);
    if (status != MS_EIO)
        return status;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank %ld is gone, or silent for %g s",
                   r->rank == 0 ? rank : 0L, r->timeout_s);
}

ms_status ms_rendezvous_tell_all(ms_ctx *cx, const ms_rendezvous *r,
                                 char text[MS_RENDEZVOUS_TEXT])
{
    if (r->rank > 0)
        return ms_rendezvous_tell(cx, r, r->rank, text);
    for (long rank = 1; rank < r->size; rank++)
        MS_TRY(ms_rendezvous_tell(cx, r, rank, text));
    return MS_OK;
}

long ms_rendezvous_missing(const ms_rendezvous *r)
{
    for (long i = 0; i < r->size; i++) {
        char byte;
        if (r->sockets[i] < 0)
            continue;
        ssize_t num = recv(r->sockets[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (num == 0 || (num < 0 && !is_transient(errno)))
            return i;
    }
    return -1;
}

void ms_rendezvous_close(ms_rendezvous *r)
{
    for (long i = 0; i < r->size; i++)
        if (r->sockets[i] >= 0)
            (void)close(r->sockets[i]);
    r->size = 0;
}
