#include "exec/backend_tcp_wire_priv.h"

#include "exec/sockets.h"

#include <errno.h>
#include <limits.h>
#include <sys/socket.h>

#define MOST_ELEMENTS (LONG_MAX / 16) /* whose bytes can be counted */

static void lose(ms_wire *wire, ms_peer *p, const char *why)
{
    if (p->parcel != NULL)
        ms_parcel_drop(p->parcel);
    p->parcel = NULL;
    if (!p->leaves)
        wire->listener.failed(wire->listener.state, p->rank, why);
    atomic_store(&p->is_over, true);
}

static size_t bytes_of(const ms_parcel *parcel)
{
    return (size_t)parcel->count * ms_scalar_bytes((ms_scalar)parcel->transfer.scalar);
}

static void deliver(ms_wire *wire, ms_peer *p)
{
    ms_parcel *came = p->parcel;
    p->parcel = NULL;
    p->come = 0;
    if (!wire->listener.arrived(wire->listener.state, p->rank, came)) {
        ms_parcel_drop(came);
        lose(wire, p, "sends what is no transfer of this run");
    }
}

/* Room for what follows. */
static void begin_part(ms_wire *wire, ms_peer *p)
{
    const ms_wire_head *h = &p->head;
    ms_transfer transfer = {.kind = h->kind,
                            .scalar = h->scalar,
                            .group = h->group,
                            .maximum = h->maximum != 0,
                            .stream = h->stream,
                            .peer = wire->rank,
                            .tag = h->tag,
                            .count = h->count};
    p->come = 0;
    p->parcel = ms_parcel_portion(wire->pool, &transfer, h->num, h->name);
    if (p->parcel == NULL) {
        wire->listener.failed(wire->listener.state, wire->rank,
                              "has no memory left for what others send");
        atomic_store(&p->is_over, true);
    } else if (bytes_of(p->parcel) == 0) {
        deliver(wire, p);
    }
}

static void take_head(ms_wire *wire, ms_peer *p)
{
    ms_wire_head *h = &p->head;
    h->name[sizeof h->name - 1] = '\0';
    bool is_known = h->first_word == MS_WIRE_FIRST_WORD && h->message <= MS_WIRE_LEAVES &&
                    h->kind < MS_NUM_TRANSFER_KINDS && h->scalar < MS_NUM_SCALARS &&
                    h->group < MS_NUM_TRAFFIC_GROUPS && h->count >= 0 && h->num >= 0 &&
                    h->num <= MOST_ELEMENTS;
    /* whoever combines parts relies on it; those of an all-to-all are compared there */
    if (is_known && h->message == MS_WIRE_PART && h->kind != MS_TRANSFER_ALL_TO_ALL)
        is_known = h->num == h->count;
    if (!is_known) {
        lose(wire, p, "sends what is no message");
    } else if (h->message == MS_WIRE_PART) {
        begin_part(wire, p);
    } else if (h->message == MS_WIRE_FAILED && h->num < wire->size) {
        /* who takes this rank for failed has ended, too */
        long failed = h->num == wire->rank ? p->rank : h->num;
        wire->listener.failed(wire->listener.state, failed, "has failed");
        p->come = 0;
    } else {
        p->leaves = true;
        p->come = 0;
    }
}

bool ms_wire_read(ms_wire *wire, ms_peer *p)
{
    bool is_head = p->parcel == NULL;
    char *to = is_head ? (char *)&p->head : p->parcel->data;
    size_t all = is_head ? sizeof p->head : bytes_of(p->parcel);
    ssize_t num = recv(p->socket, to + p->come, all - p->come, 0);
    if (num < 0 && ms_socket_is_transient(errno))
        return errno == EINTR;
    if (num <= 0) {
        lose(wire, p, "has ended");
        return false;
    }
    p->come += (size_t)num;
    if (p->come == all && is_head)
        take_head(wire, p);
    else if (p->come == all)
        deliver(wire, p);
    return !atomic_load(&p->is_over);
}
