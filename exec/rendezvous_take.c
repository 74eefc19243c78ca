#include "exec/rendezvous_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- texts ---- */

ms_status ms_rendezvous_put_text(const ms_patience *patience, int socket,
                                 const char text[MS_RENDEZVOUS_TEXT])
{
    return ms_socket_put(patience, socket, text, MS_RENDEZVOUS_TEXT);
}

ms_status ms_rendezvous_get_text(const ms_patience *patience, int socket,
                                 char text[MS_RENDEZVOUS_TEXT])
{
    MS_TRY(ms_socket_get(patience, socket, text, MS_RENDEZVOUS_TEXT));
    text[MS_RENDEZVOUS_TEXT - 1] = '\0';
    return MS_OK;
}

bool ms_rendezvous_is_gone(int socket)
{
    char byte;
    ssize_t num = recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return num == 0 || (num < 0 && !ms_socket_is_transient(errno));
}

/* ---- who comes ---- */

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
static long greeted_by(const ms_rendezvous *r, const ms_patience *patience, int socket,
                       long *size, bool knows_nonce)
{
    char text[MS_RENDEZVOUS_TEXT];
    const char *at = text;
    ms_patience soon = ms_patience_within(patience, MS_GREETING_S);
    if (ms_rendezvous_get_text(&soon, socket, text) != MS_OK)
        return -1;
    long rank = take_number(&at, "meshsim rank ");
    *size = take_number(&at, " of ");
    if (*size <= 0 || *at != ' ' || (knows_nonce && strcmp(at + 1, r->nonce) != 0))
        return -1;
    return rank;
}

static void answer(const ms_patience *patience, int socket, const char *what,
                   const char *text)
{
    char all[MS_RENDEZVOUS_TEXT] = "";
    ms_patience soon = ms_patience_within(patience, MS_GREETING_S);
    snprintf(all, sizeof all, "%s%s", what, text);
    (void)ms_rendezvous_put_text(&soon, socket, all);
}

/* Without a message. MS_EIO: it was sent away. */
static ms_status welcome(ms_rendezvous *r, const ms_patience *patience, long rank,
                         int socket)
{
    if (r->sockets[rank] >= 0 &&
        ms_rendezvous_is_gone(r->sockets[rank])) { /* it comes once more */
        (void)close(r->sockets[rank]);
        r->sockets[rank] = -1;
    }
    if (r->sockets[rank] >= 0) {
        char text[80];
        snprintf(text, sizeof text, "rank %ld is here already", rank);
        answer(patience, socket, MS_REFUSAL, text);
        return MS_EIO;
    }
    r->sockets[rank] = socket;
    answer(patience, socket, MS_WELCOME, r->nonce);
    return MS_OK;
}

/* Who is no rank of this run is sent away. */
static ms_status take_one(ms_ctx *cx, ms_rendezvous *r, int listener,
                          const ms_patience *patience, bool knows_nonce)
{
    long size = 0;
    int socket = ms_socket_prepare(accept(listener, NULL, NULL));
    if (socket < 0 && (ms_socket_is_transient(errno) || errno == ECONNABORTED))
        return MS_OK;
    if (socket < 0) {
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank %ld cannot take the others: %s",
                       r->rank, strerror(errno));
    }
    long rank = greeted_by(r, patience, socket, &size, knows_nonce);
    bool is_other = rank >= 0 && rank != r->rank;
    if (is_other && size == r->size && rank < size &&
        welcome(r, patience, rank, socket) == MS_OK)
        return MS_OK;
    ms_status status = MS_OK;
    if (is_other && size != r->size) {
        status = ms_fail(cx, MS_EIO, MS_NOWHERE,
                         "rank %ld was started as one of %ld, rank %ld as one of %ld",
                         rank, size, r->rank, r->size);
        answer(patience, socket, MS_REFUSAL, cx->last->message);
    }
    (void)close(socket);
    return status;
}

static long num_missing(const ms_rendezvous *r, long from, long *first)
{
    long num = 0;
    for (long rank = r->size - 1; rank >= from; rank--) {
        num += r->sockets[rank] < 0;
        *first = r->sockets[rank] < 0 ? rank : *first;
    }
    return num;
}

ms_status ms_rendezvous_take_all(ms_ctx *cx, ms_rendezvous *r, int listener, long from,
                                 bool knows_nonce)
{
    long num, first = 0;
    ms_patience patience = ms_rendezvous_patience(r);
    while ((num = num_missing(r, from, &first)) > 0) {
        ms_status status = ms_socket_wait(&patience, listener, POLLIN);
        if (status == MS_EIO) {
            return ms_fail(
                cx, MS_EIO, MS_NOWHERE,
                "waited %g s for all ranks: %ld of %ld did not come, rank %ld first",
                r->timeout_s, num, r->size, first);
        }
        MS_TRY(status);
        MS_TRY(take_one(cx, r, listener, &patience, knows_nonce));
    }
    return MS_OK;
}
