/* Sockets between all ranks, and a thread that reads from all of them all the time:
 * nobody who sends waits for a receiver, whatever all send at once. What cannot be sent
 * at once it sends later. */
#ifndef MS_EXEC_BACKEND_TCP_WIRE_H
#define MS_EXEC_BACKEND_TCP_WIRE_H

#include "exec/backend_parcel.h"
#include "exec/rendezvous.h"

typedef struct ms_wire ms_wire;

/* Who is told, by the wire's thread. */
typedef struct ms_wire_listener {
    void *state;
    /* A part of what rank `from` left for others; the parcel is the listener's. False: it
     * is nonsense. */
    bool (*arrived)(void *state, long from, ms_parcel *parcel);
    /* Told once for each rank at most, but for the own one, where no memory is left.
     * `why` is static: "has ended". */
    void (*failed)(void *state, long rank, const char *why);
} ms_wire_listener;

/* Sockets stay the caller's, until the wire is closed. MS_EIO: no memory, no thread. */
ms_status ms_wire_open(ms_ctx *cx, const ms_rendezvous *meeting, ms_pool *pool,
                       const ms_wire_listener *listener, ms_wire **out);
/* A part of a parcel, which is kept until it has been sent. Never waits. False: no
 * memory is left. */
bool ms_wire_send(ms_wire *wire, long to, ms_parcel *parcel, ms_portion portion);
/* Tells all others that a rank has failed. */
void ms_wire_send_failure(ms_wire *wire, long rank);
/* Waits until all has been sent. False: not within the time. */
bool ms_wire_flush(ms_wire *wire, double seconds);
/* Takes leave of the others, and waits so long at most until they do. NULL: nothing. */
void ms_wire_close(ms_wire *wire, double seconds);

#endif
