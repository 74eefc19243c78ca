#include "exec/backend_tcp_wire_priv.h"

#include "base/clock.h"
#include "exec/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define REST_NS 200000L

/* ---- under the lock ---- */

static void drop_first(ms_peer *p)
{
    ms_letter *l = p->first;
    p->first = l->next;
    if (p->first == NULL)
        p->end = &p->first;
    if (l->parcel != NULL)
        ms_parcel_drop(l->parcel);
    free(l);
}

void ms_wire_drop_letters(ms_peer *p)
{
    while (p->first != NULL)
        drop_first(p);
}

/* As much as the system takes. What ends the connection is found by who reads: there may
 * be something left to read. */
void ms_wire_send_waiting(ms_peer *p)
{
    while (p->first != NULL) {
        ms_letter *l = p->first;
        size_t of_head = l->sent < sizeof l->head ? sizeof l->head - l->sent : 0;
        size_t of_data = l->sent - (sizeof l->head - of_head);
        struct iovec parts[2] = {
            {(char *)&l->head + (sizeof l->head - of_head), of_head},
            {l->bytes > 0 ? l->data + of_data : NULL, l->bytes - of_data}};
        struct msghdr what = {.msg_iov = parts, .msg_iovlen = l->bytes > 0 ? 2 : 1};
        ssize_t num = sendmsg(p->socket, &what, MSG_NOSIGNAL);
        if (num < 0 && errno == EINTR)
            continue;
        if (num < 0 && ms_socket_is_transient(errno))
            return;
        if (num < 0) {
            p->is_deaf = true;
            ms_wire_drop_letters(p);
            return;
        }
        l->sent += (size_t)num;
        if (l->sent == sizeof l->head + l->bytes)
            drop_first(p);
    }
}

void ms_wire_wake(const ms_wire *wire)
{
    ssize_t ignored = write(wire->wake[1], "", 1); /* full: it is awake */
    (void)ignored;
}

static bool post(ms_wire *wire, long to, const ms_letter *what)
{
    ms_peer *p = &wire->peers[to];
    ms_letter *l = malloc(sizeof *l);
    if (l == NULL)
        return false;
    *l = *what;
    if (l->parcel != NULL)
        ms_parcel_hold(l->parcel);
    pthread_mutex_lock(&wire->lock);
    *p->end = l;
    p->end = &l->next;
    if (p->is_deaf)
        ms_wire_drop_letters(p);
    ms_wire_send_waiting(p);
    bool is_left = p->first != NULL;
    pthread_mutex_unlock(&wire->lock);
    if (is_left)
        ms_wire_wake(wire);
    return true;
}

bool ms_wire_send(ms_wire *wire, long to, ms_parcel *parcel, ms_portion portion)
{
    const ms_transfer *t = &parcel->transfer;
    ms_letter what = {.head = {.first_word = MS_WIRE_FIRST_WORD,
                               .message = MS_WIRE_PART,
                               .kind = t->kind,
                               .scalar = t->scalar,
                               .group = t->group,
                               .maximum = t->maximum,
                               .stream = t->stream,
                               .tag = t->tag,
                               .count = t->count,
                               .num = portion.count},
                      .parcel = parcel,
                      .data = parcel->data + (portion.data - parcel->data)};
    what.bytes = (size_t)portion.count * ms_scalar_bytes((ms_scalar)t->scalar);
    snprintf(what.head.name, sizeof what.head.name, "%s", t->name != NULL ? t->name : "");
    return post(wire, to, &what);
}

void ms_wire_post_to_all(ms_wire *wire, ms_wire_message message, long num)
{
    ms_letter what = {.head = {.first_word = MS_WIRE_FIRST_WORD,
                               .message = (unsigned char)message,
                               .num = num}};
    for (long to = 0; to < wire->size; to++)
        if (to != wire->rank)
            (void)post(wire, to, &what);
}

void ms_wire_send_failure(ms_wire *wire, long rank)
{
    ms_wire_post_to_all(wire, MS_WIRE_FAILED, rank);
}

static bool is_all_sent(ms_wire *wire)
{
    bool is_empty = true;
    pthread_mutex_lock(&wire->lock);
    for (long i = 0; i < wire->size; i++)
        is_empty = is_empty && wire->peers[i].first == NULL;
    pthread_mutex_unlock(&wire->lock);
    return is_empty;
}

void ms_wire_rest(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
}

bool ms_wire_flush(ms_wire *wire, double seconds)
{
    double until_s = ms_clock_s() + seconds;
    while (!is_all_sent(wire)) {
        if (ms_clock_s() > until_s)
            return false;
        ms_wire_rest();
    }
    return true;
}
