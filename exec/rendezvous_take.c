#include "exec/rendezvous_priv.h"

#include "base/clock.h"

#include <errno.h>
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
static long greeted_by(const ms_rendezvous *r, const char *text, long *size,
                       bool knows_nonce)
{
    long rank = take_number(&text, "meshsim rank ");
    *size = take_number(&text, " of ");
    if (*size <= 0 || *text != ' ' || (knows_nonce && strcmp(text + 1, r->nonce) != 0))
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
static ms_status take_one(ms_ctx *cx, ms_rendezvous *r, const ms_patience *patience,
                          bool knows_nonce, int socket, const char *text)
{
    long size = 0, rank = greeted_by(r, text, &size, knows_nonce);
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

/* ---- the door: strangers who say nothing keep no rank waiting ---- */

#define MOST_GUESTS 64 /* at a time; more wait at the listener */

typedef struct guest {
    int socket; /* -1: none */
    double until_s;
    size_t come; /* of the text */
    char text[MS_RENDEZVOUS_TEXT];
} guest;

typedef struct door {
    int listener;
    bool knows_nonce;
    guest guests[MOST_GUESTS];
    struct pollfd ready[MOST_GUESTS + 1];
} door;

static void open_door(door *d, int listener, bool knows_nonce)
{
    d->listener = listener;
    d->knows_nonce = knows_nonce;
    for (int i = 0; i < MOST_GUESTS; i++)
        d->guests[i].socket = -1;
}

static void send_away(guest *g)
{
    if (g->socket >= 0)
        (void)close(g->socket);
    g->socket = -1;
}

static guest *free_place(door *d)
{
    for (int i = 0; i < MOST_GUESTS; i++)
        if (d->guests[i].socket < 0)
            return &d->guests[i];
    return NULL;
}

static ms_status let_in(ms_ctx *cx, const ms_rendezvous *r, door *d)
{
    guest *g = free_place(d);
    g->socket = ms_socket_prepare(accept(d->listener, NULL, NULL));
    g->until_s = ms_clock_s() + MS_GREETING_S;
    g->come = 0;
    if (g->socket >= 0 || ms_socket_is_of_comer(errno))
        return MS_OK;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank %ld cannot take the others: %s", r->rank,
                   strerror(errno));
}

static ms_status hear(ms_ctx *cx, ms_rendezvous *r, const ms_patience *patience,
                      const door *d, guest *g)
{
    ssize_t came = recv(g->socket, g->text + g->come, sizeof g->text - g->come, 0);
    bool is_gone = came == 0 || (came < 0 && !ms_socket_is_transient(errno));
    g->come += came > 0 ? (size_t)came : 0;
    if (g->come == sizeof g->text) {
        int socket = g->socket;
        g->socket = -1;
        g->text[sizeof g->text - 1] = '\0';
        return take_one(cx, r, patience, d->knows_nonce, socket, g->text);
    }
    if (is_gone || ms_clock_s() > g->until_s)
        send_away(g);
    return MS_OK;
}

/* Once. Without a message, MS_EIO: the time is over. */
static ms_status look_at_door(ms_ctx *cx, ms_rendezvous *r, const ms_patience *patience,
                              door *d)
{
    nfds_t num = 1; /* no more than there are: systems limit it to what may be open */
    int at_door = free_place(d) != NULL ? d->listener : -1;
    d->ready[0] = (struct pollfd){.fd = at_door, .events = POLLIN};
    for (int i = 0; i < MOST_GUESTS; i++)
        if (d->guests[i].socket >= 0)
            d->ready[num++] =
                (struct pollfd){.fd = d->guests[i].socket, .events = POLLIN};
    MS_TRY(ms_socket_look(patience, d->ready, num));
    for (int i = 0; i < MOST_GUESTS; i++)
        if (d->guests[i].socket >= 0)
            MS_TRY(hear(cx, r, patience, d, &d->guests[i]));
    return d->ready[0].revents != 0 ? let_in(cx, r, d) : MS_OK;
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
    ms_status status = MS_OK;
    door *d = MS_NEW(cx->arena, door);
    open_door(d, listener, knows_nonce);
    while (status == MS_OK && (num = num_missing(r, from, &first)) > 0) {
        int num_errors = cx->num_errors;
        status = look_at_door(cx, r, &patience, d);
        if (status == MS_EIO && cx->num_errors == num_errors) {
            (void)ms_fail(
                cx, MS_EIO, MS_NOWHERE,
                "waited %g s for all ranks: %ld of %ld did not come, rank %ld first",
                r->timeout_s, num, r->size, first);
        }
    }
    for (int i = 0; i < MOST_GUESTS; i++)
        send_away(&d->guests[i]);
    return status;
}
