/* Parts of exec/backend_tcp_wire.h. */
#ifndef MS_EXEC_BACKEND_TCP_WIRE_PRIV_H
#define MS_EXEC_BACKEND_TCP_WIRE_PRIV_H

#include "exec/backend_tcp_wire.h"

#include <poll.h>
#include <pthread.h>

#define MS_WIRE_FIRST_WORD 0x6d657368u /* of every message */

typedef enum ms_wire_message {
    MS_WIRE_PART,   /* of a parcel */
    MS_WIRE_FAILED, /* a rank has; this one knows */
    MS_WIRE_LEAVES
} ms_wire_message;

/* What comes before the data. All ranks run the same program. */
typedef struct ms_wire_head {
    unsigned first_word;
    unsigned char message, kind, scalar, group, maximum, stream;
    int tag;
    long count; /* of the transfer */
    long num;   /* elements that follow; of a failure: the rank */
    char name[MS_PARCEL_NAME];
} ms_wire_head;

typedef struct ms_letter {
    ms_wire_head head;
    ms_parcel *parcel; /* NULL: a head alone */
    char *data;
    size_t bytes, sent; /* of the data; of head and data */
    struct ms_letter *next;
} ms_letter;

typedef struct ms_peer {
    long rank;
    int socket;
    /* under the lock */
    ms_letter *first, **end;
    bool is_deaf; /* nothing can be sent any more */
    /* of the thread */
    ms_wire_head head;
    ms_parcel *parcel; /* coming */
    size_t come;       /* of head, then of data */
    atomic_bool is_over;
    bool leaves;
} ms_peer;

struct ms_wire {
    long rank, size;
    ms_pool *pool;
    ms_wire_listener listener;
    int wake[2]; /* a pipe that ends the thread's rest */
    pthread_mutex_t lock;
    pthread_t thread;
    bool has_thread;
    atomic_bool is_closing;
    struct pollfd *ready; /* (1 + size) */
    ms_peer *peers;       /* (size) */
};

/* ---- sending (backend_tcp_send.c) ---- */
/* Under the lock: as much as the system takes. */
void ms_wire_send_waiting(ms_peer *peer);
void ms_wire_drop_letters(ms_peer *peer);
/* A message without data to all others. */
void ms_wire_post_to_all(ms_wire *wire, ms_wire_message message, long num);
/* The thread looks again at what there is to do. */
void ms_wire_wake(const ms_wire *wire);
void ms_wire_rest(void);

/* ---- receiving, by the thread (backend_tcp_receive.c) ---- */
/* False: nothing more is there, or ever will be. */
bool ms_wire_read(ms_wire *wire, ms_peer *peer);

#endif
