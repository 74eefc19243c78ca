#include "exec/rendezvous_priv.h"

#include "base/clock.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

ms_patience ms_rendezvous_patience(const ms_rendezvous *r)
{
    return ms_patience_for(r->timeout_s, r->interrupted);
}

/* ---- rank 0 ---- */

/* Where an own name is given an address that nobody else reaches (127.0.1.1), all of
 * them will do. */
static struct addrinfo *reachable(const ms_meeting_point *at, struct addrinfo *found)
{
    char digits[MS_HOST_TEXT];
    const char *why;
    if (strcmp(at->address, "localhost") == 0 || ms_host_is_local(at->address) ||
        getnameinfo(found->ai_addr, found->ai_addrlen, digits, sizeof digits, NULL, 0,
                    NI_NUMERICHOST) != 0 ||
        !ms_host_is_local(digits))
        return found;
    freeaddrinfo(found);
    return ms_host_find("0.0.0.0", at->port, &why);
}

static ms_status not_found(ms_ctx *cx, const ms_meeting_point *at, const char *why)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE,
                   "the address \"%s\", where ranks meet, is not found: %s", at->address,
                   why);
}

static ms_status listen_at(ms_ctx *cx, const ms_meeting_point *at, int *listener)
{
    const char *why;
    int error = 0;
    struct addrinfo *found = ms_host_find(at->address, at->port, &why);
    if (found == NULL)
        return not_found(cx, at, why);
    found = reachable(at, found);
    *listener = ms_socket_listen(found, &error);
    if (found != NULL)
        freeaddrinfo(found);
    if (*listener >= 0)
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank 0 cannot listen at %s, port %ld: %s",
                   at->address, at->port, strerror(error));
}

static void make_nonce(char nonce[MS_NONCE_TEXT])
{
    FILE *file = fopen("/dev/urandom", "rb");
    uint64_t word = 0;
    if (file == NULL || fread(&word, sizeof word, 1, file) != 1)
        word = (uint64_t)(ms_clock_s() * 1e9) * 0x9e3779b97f4a7c15U + (uint64_t)getpid();
    if (file != NULL)
        (void)fclose(file);
    snprintf(nonce, MS_NONCE_TEXT, "%016llx", (unsigned long long)word);
}

static ms_status meet_at_address(ms_ctx *cx, ms_rendezvous *r, const ms_meeting_point *at)
{
    int listener = -1;
    MS_TRY(listen_at(cx, at, &listener));
    ms_status status = ms_rendezvous_take_all(cx, r, listener, 1, false);
    (void)close(listener);
    return status;
}

static ms_status meet_by_file(ms_ctx *cx, ms_rendezvous *r, const char *path)
{
    long port = 0;
    int error = 0;
    MS_TRY(ms_meeting_file_clear(cx, path));
    int listener = ms_socket_listen_anywhere(false, &port, &error);
    if (listener < 0) {
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank 0 cannot listen: %s",
                       strerror(error));
    }
    ms_status status = ms_meeting_file_write(cx, path, port, r->nonce);
    if (status == MS_OK) {
        status = ms_rendezvous_take_all(cx, r, listener, 1, true);
        ms_meeting_file_remove(path, r->nonce);
    }
    (void)close(listener);
    return status;
}

/* ---- others ---- */

#define MOST_PAUSE_NS 50000000L

ms_status ms_rendezvous_greet(const ms_rendezvous *r, const ms_patience *patience,
                              int socket, char nonce[MS_NONCE_TEXT],
                              char said[MS_RENDEZVOUS_TEXT])
{
    char text[MS_RENDEZVOUS_TEXT] = "";
    snprintf(text, sizeof text, "meshsim rank %ld of %ld %s", r->rank, r->size, nonce);
    said[0] = '\0';
    MS_TRY(ms_rendezvous_put_text(patience, socket, text));
    MS_TRY(ms_rendezvous_get_text(patience, socket, text));
    if (strncmp(text, MS_WELCOME, strlen(MS_WELCOME)) == 0) {
        snprintf(nonce, MS_NONCE_TEXT, "%.*s", MS_NONCE_TEXT - 1,
                 text + strlen(MS_WELCOME));
        return MS_OK;
    }
    if (strncmp(text, MS_REFUSAL, strlen(MS_REFUSAL)) == 0)
        memmove(said, text + strlen(MS_REFUSAL), strlen(text + strlen(MS_REFUSAL)) + 1);
    return MS_EIO;
}

/* Rank 0 may begin later. MS_EIO, without a message: the time is over. */
static ms_status pause_before_next(const ms_patience *patience)
{
    const struct timespec pause = {.tv_nsec = MOST_PAUSE_NS};
    if (ms_patience_interrupted(patience))
        return MS_EINTERRUPTED;
    if (ms_clock_s() > patience->until_s)
        return MS_EIO;
    nanosleep(&pause, NULL);
    return MS_OK;
}

static ms_status reach_later(ms_ctx *cx, ms_rendezvous *r, const ms_patience *patience,
                             const ms_meeting_point *at, const struct addrinfo *found)
{
    int error = 0;
    for (;;) {
        ms_status status = ms_socket_reach(patience, found, &r->sockets[0], &error);
        if (status == MS_OK)
            return MS_OK;
        status = pause_before_next(patience);
        if (status == MS_EIO) {
            return ms_fail(cx, MS_EIO, MS_NOWHERE,
                           "waited %g s for rank 0, which does not listen at %s, port "
                           "%ld: %s",
                           r->timeout_s, at->address, at->port, strerror(error));
        }
        MS_TRY(status);
    }
}

static ms_status come_to_address(ms_ctx *cx, ms_rendezvous *r, const ms_meeting_point *at)
{
    const char *why;
    char said[MS_RENDEZVOUS_TEXT] = "";
    ms_patience patience = ms_rendezvous_patience(r);
    struct addrinfo *found = ms_host_find(at->address, at->port, &why);
    if (found == NULL)
        return not_found(cx, at, why);
    ms_status status = reach_later(cx, r, &patience, at, found);
    freeaddrinfo(found);
    MS_TRY(status);
    status = ms_rendezvous_greet(r, &patience, r->sockets[0], r->nonce, said);
    if (status != MS_EIO)
        return status;
    if (said[0] != '\0')
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank 0 sends this one away: %s", said);
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank 0 at %s, port %ld, does not answer",
                   at->address, at->port);
}

/* One address of the file. MS_EIO, without a message: nobody of this run is there. */
static ms_status try_address(ms_rendezvous *r, const ms_patience *patience,
                             const ms_meeting_file *file, const char *address,
                             char said[MS_RENDEZVOUS_TEXT])
{
    const char *why;
    int error;
    struct addrinfo *found = ms_host_find(address, file->port, &why);
    said[0] = '\0';
    if (found == NULL)
        return MS_EIO;
    ms_status status = ms_socket_reach(patience, found, &r->sockets[0], &error);
    freeaddrinfo(found);
    MS_TRY(status);
    memcpy(r->nonce, file->nonce, sizeof r->nonce);
    ms_patience soon = ms_patience_within(patience, 2.0 * MS_GREETING_S);
    status = ms_rendezvous_greet(r, &soon, r->sockets[0], r->nonce, said);
    if (status == MS_OK && strcmp(r->nonce, file->nonce) == 0)
        return MS_OK;
    (void)close(r->sockets[0]);
    r->sockets[0] = -1;
    return status == MS_OK ? MS_EIO : status;
}

static ms_status come_by_file(ms_ctx *cx, ms_rendezvous *r, const char *path)
{
    ms_patience patience = ms_rendezvous_patience(r);
    char said[MS_RENDEZVOUS_TEXT] = "";
    for (;;) {
        ms_meeting_file file;
        bool is_there = ms_meeting_file_read(path, &file);
        for (int i = 0; i < file.num_addresses && is_there; i++) {
            ms_status status = try_address(r, &patience, &file, file.addresses[i], said);
            if (status != MS_EIO)
                return status;
            if (said[0] != '\0') {
                return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank 0 sends this one away: %s",
                               said);
            }
        }
        ms_status status = pause_before_next(&patience);
        if (status == MS_EIO) {
            return ms_fail(cx, MS_EIO, MS_NOWHERE, "waited %g s for rank 0: %s %s",
                           r->timeout_s, path,
                           is_there ? "says where it is, but it does not answer there"
                                    : "does not say where it is");
        }
        MS_TRY(status);
    }
}

/* ---- both ---- */

static ms_status meet(ms_ctx *cx, ms_rendezvous *r, const ms_meeting_point *at)
{
    if (r->rank > 0)
        return at->file != NULL ? come_by_file(cx, r, at->file)
                                : come_to_address(cx, r, at);
    make_nonce(r->nonce);
    return at->file != NULL ? meet_by_file(cx, r, at->file) : meet_at_address(cx, r, at);
}

ms_status ms_rendezvous_open(ms_ctx *cx, const ms_launch *launch,
                             const ms_meeting_point *at, double timeout_s,
                             volatile const int *interrupted, ms_rendezvous *out)
{
    *out = (ms_rendezvous){.rank = launch->rank,
                           .size = launch->size,
                           .timeout_s = timeout_s,
                           .interrupted = interrupted,
                           .sockets = MS_NEW_ARRAY(cx->arena, launch->size, int)};
    for (long i = 0; i < launch->size; i++)
        out->sockets[i] = -1;
    ms_status status = meet(cx, out, at);
    if (status != MS_OK)
        ms_rendezvous_close(out);
    return status;
}

ms_status ms_rendezvous_tell(ms_ctx *cx, const ms_rendezvous *r, long rank,
                             char text[MS_RENDEZVOUS_TEXT])
{
    ms_patience patience = ms_rendezvous_patience(r);
    ms_status status = r->rank == 0
                           ? ms_rendezvous_put_text(&patience, r->sockets[rank], text)
                           : ms_rendezvous_get_text(&patience, r->sockets[0], text);
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
    for (long i = 0; i < r->size; i++)
        if (r->sockets[i] >= 0 && ms_rendezvous_is_gone(r->sockets[i]))
            return i;
    return -1;
}

void ms_rendezvous_close(ms_rendezvous *r)
{
    for (long i = 0; i < r->size; i++)
        if (r->sockets[i] >= 0)
            (void)close(r->sockets[i]);
    r->size = 0;
}
