/* Processes that a launcher started without a library between them meet at an address, or
 * by a file that all of them see: rank 0 listens, the others come to it.
 *
 * The file is for the ranks of one run. Rank 0 removes what an earlier run left there
 * when it begins, but nothing else, writes its addresses and a random word at once (under
 * another name, then renamed), and removes it when all have come. What an earlier run
 * left misleads nobody: where it says, nobody answers, or somebody who does not know its
 * word; who came there reads the file again until the time is over. */
#ifndef MS_EXEC_RENDEZVOUS_H
#define MS_EXEC_RENDEZVOUS_H

#include "base/diag.h"
#include "exec/environment.h"

#define MS_RENDEZVOUS_TEXT 2048
#define MS_NONCE_TEXT      20

typedef struct ms_rendezvous {
    long rank, size;
    double timeout_s;
    /* set by a signal: who waits then, waits no more; NULL: never */
    volatile const int *interrupted;
    /* (size) of rank 0, to each of the others; of others [0], to rank 0. -1: none */
    int *sockets;
    char nonce[MS_NONCE_TEXT]; /* the run's own random word; all have the same */
} ms_rendezvous;

/* Waits for all. MS_EIO: the address is not ours or taken, the file cannot be written,
 * somebody does not come in time, or comes with another size. MS_EINTERRUPTED, without a
 * message: `interrupted` (may be NULL) was set. Lives in cx->arena until it is closed. */
ms_status ms_rendezvous_open(ms_ctx *cx, const ms_launch *launch,
                             const ms_meeting_point *at, double timeout_s,
                             volatile const int *interrupted, ms_rendezvous *out);
/* From then on every rank has a socket to each of the others. Of all ranks; fails as
 * ms_rendezvous_open. */
ms_status ms_rendezvous_connect_all(ms_ctx *cx, ms_rendezvous *r);
/* MS_EIO: somebody is gone, or silent for timeout_s; MS_EINTERRUPTED as above. Of all:
 * `text` becomes what it is on rank 0. */
ms_status ms_rendezvous_tell_all(ms_ctx *cx, const ms_rendezvous *r,
                                 char text[MS_RENDEZVOUS_TEXT]);
/* Of rank 0 and one other, which waits until it is told. */
ms_status ms_rendezvous_tell(ms_ctx *cx, const ms_rendezvous *r, long rank,
                             char text[MS_RENDEZVOUS_TEXT]);
/* A rank whose process has ended or left, as far as this one knows; -1: none. */
long ms_rendezvous_missing(const ms_rendezvous *r);
/* Can be called twice. */
void ms_rendezvous_close(ms_rendezvous *r);

#endif
