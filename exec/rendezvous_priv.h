/* Parts of exec/rendezvous.h. */
#ifndef MS_EXEC_RENDEZVOUS_PRIV_H
#define MS_EXEC_RENDEZVOUS_PRIV_H

#include "exec/rendezvous.h"
#include "exec/sockets.h"

/* What a rank is told after it has said who it is; with the run's word, or why it is sent away. */
#define MS_WELCOME "meshsim welcome "
#define MS_REFUSAL "meshsim refuses: "

ms_status ms_rendezvous_put_text(const ms_patience *patience, int socket,
                                 const char text[MS_RENDEZVOUS_TEXT]);
ms_status ms_rendezvous_get_text(const ms_patience *patience, int socket,
                                 char text[MS_RENDEZVOUS_TEXT]);
/* Whether the other end of a socket has been closed. */
bool ms_rendezvous_is_gone(int socket);

/* Takes all ranks from `from` on, each at its socket. Who does not know the run's word
 * (where it is to), is no rank of this run, or is here already, is sent away. */
ms_status ms_rendezvous_take_all(ms_ctx *cx, ms_rendezvous *r, int listener, long from,
                                 bool knows_nonce);
/* Says who comes, and waits to be welcome; `nonce` (may be "") is what it knows, and
 * becomes the run's. Without a message: MS_EIO: it is sent away, or nobody answers;
 * `said` is why if it was told. */
ms_status ms_rendezvous_greet(const ms_rendezvous *r, const ms_patience *patience,
                              int socket, char nonce[MS_NONCE_TEXT],
                              char said[MS_RENDEZVOUS_TEXT]);
ms_patience ms_rendezvous_patience(const ms_rendezvous *r);

/* ---- the file (rendezvous_file.c) ---- */

#define MS_MEETING_ADDRESSES 16

typedef struct ms_meeting_file {
    char nonce[MS_NONCE_TEXT];
    long port;
    int num_addresses;
    /* of rank 0, the nearest to this machine first */
    char addresses[MS_MEETING_ADDRESSES][MS_HOST_TEXT];
} ms_meeting_file;

/* At once. MS_EIO: it cannot be written. */
ms_status ms_meeting_file_write(ms_ctx *cx, const char *path, long port,
                                const char nonce[MS_NONCE_TEXT]);
/* Before it is written: removes what an earlier run left there, or an empty file. MS_EIO:
 * it is something else, which is kept. */
ms_status ms_meeting_file_clear(ms_ctx *cx, const char *path);
/* Unless another run has written it since. */
void ms_meeting_file_remove(const char *path, const char nonce[MS_NONCE_TEXT]);
/* False: it is not there, or is something else. */
bool ms_meeting_file_read(const char *path, ms_meeting_file *out);

#endif
