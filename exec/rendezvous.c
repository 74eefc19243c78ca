#include "exec/rendezvous.h"

#include "base/clock.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define GREETING_S 5.0 /* for whoever comes to say who it is */

/* ---- texts over a socket ---- */

static bool is_ready(int socket, short what, double until_s)
{
    double left_s = until_s - ms_clock_s();
    struct pollfd ready = {.fd = socket, .events = what};
    int left_ms = left_s <= 0.0 ? 0 : left_s > 1e6 ? 1000000000 : (int)(1e3 * left_s) + 1;
    return poll(&ready, 1, left_ms) > 0;
}

static bool put_text(int socket, const char text[MS_RENDEZVOUS_TEXT], double until_s)
{
    for (size_t done = 0; done < MS_RENDEZVOUS_TEXT;) {
        if (!is_ready(socket, POLLOUT, until_s))
            return false;
        ssize_t num = send(socket, text + done, MS_RENDEZVOUS_TEXT - done, MSG_NOSIGNAL);
        if (num <= 0 && errno != EINTR)
            return false;
        done += num > 0 ? (size_t)num : 0;
    }
    return true;
}

static bool get_text(int socket, char text[MS_RENDEZVOUS_TEXT], double until_s)
{
    for (size_t done = 0; done < MS_RENDEZVOUS_TEXT;) {
        if (!is_ready(socket, POLLIN, until_s))
            return false;
        ssize_t num = recv(socket, text + done, MS_RENDEZVOUS_TEXT - done, 0);
        if (num == 0 || (num < 0 && errno != EINTR))
            return false;
        done += num > 0 ? (size_t)num : 0;
    }
    text[MS_RENDEZVOUS_TEXT - 1] = '\0';
    return true;
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

/* The number of another rank of the same run; -1: somebody else. */
static long greeted_by(const ms_rendezvous *r, int socket, double until_s, long *size)
{
    char text[MS_RENDEZVOUS_TEXT];
    const char *at = text;
    double soon_s = ms_clock_s() + GREETING_S;
    if (!get_text(socket, text, soon_s < until_s ? soon_s : until_s))
        return -1;
    long rank = take_number(&at, "meshsim rank ");
    *size = take_number(&at, " of ");
    bool is_free = rank > 0 && rank < r->size && r->sockets[rank] < 0;
    return is_free && *size > 0 ? rank : -1;
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

static ms_status take_all(ms_ctx *cx, ms_rendezvous *r, int listener)
{
    double until_s = ms_clock_s() + r->timeout_s;
    for (long num = 1; num < r->size;) {
        if (!is_ready(listener, POLLIN, until_s))
            return missing_ranks(cx, r);
        long size = 0;
        int socket = accept(listener, NULL, NULL);
        if (socket < 0)
            continue;
        long rank = greeted_by(r, socket, until_s, &size);
        if (rank < 0) {
            (void)close(socket);
            continue;
        }
        r->sockets[rank] = socket;
        num++;
        if (size != r->size)
            return ms_fail(cx, MS_EIO, MS_NOWHERE,
                           "rank %ld was started as one of %ld, rank 0 as one of %ld",
                           rank, size, r->size);
    }
    return MS_OK;
}

static ms_status listen_at(ms_ctx *cx, const ms_meeting_point *at,
                           const struct addrinfo *found, int *out)
{
    int yes = 1, error = 0;
    for (; found != NULL; found = found->ai_next) {
        *out = socket(found->ai_family, found->ai_socktype, 0);
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

static bool reach(const struct addrinfo *found, int *out)
{
    for (; found != NULL; found = found->ai_next) {
        *out = socket(found->ai_family, found->ai_socktype, 0);
        if (*out < 0)
            continue;
        if (connect(*out, found->ai_addr, found->ai_addrlen) == 0)
            return true;
        (void)close(*out);
    }
    return false;
}

/* Rank 0 may begin later. */
static ms_status come(ms_ctx *cx, ms_rendezvous *r, const ms_meeting_point *at,
                      const struct addrinfo *found)
{
    char text[MS_RENDEZVOUS_TEXT] = "";
    double until_s = ms_clock_s() + r->timeout_s;
    const struct timespec pause = {.tv_nsec = 50000000};
    int socket;
    while (!reach(found, &socket)) {
        if (ms_clock_s() > until_s) {
            return ms_fail(cx, MS_EIO, MS_NOWHERE,
                           "waited %g s for rank 0, which does not listen at %s, port "
                           "%ld",
                           r->timeout_s, at->address, at->port);
        }
        nanosleep(&pause, NULL);
    }
    r->sockets[0] = socket;
    snprintf(text, sizeof text, "meshsim rank %ld of %ld", r->rank, r->size);
    if (put_text(socket, text, until_s))
        return MS_OK;
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
                             ms_rendezvous *out)
{
    struct addrinfo *found, want = {.ai_socktype = SOCK_STREAM};
    const char *port = ms_arena_printf(cx->arena, "%ld", at->port);
    *out = (ms_rendezvous){.rank = launch->rank,
                           .size = launch->size,
                           .timeout_s = timeout_s,
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
    bool told = r->rank == 0 ? put_text(r->sockets[rank], text, until_s)
                             : get_text(r->sockets[0], text, until_s);
    return told ? MS_OK
                : ms_fail(cx, MS_EIO, MS_NOWHERE, "rank %ld is gone, or silent for %g s",
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
        if (r->sockets[i] >= 0 &&
            recv(r->sockets[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
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
