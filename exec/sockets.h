/* Sockets that never block: who waits on one has a deadline, and looks up at an interrupt. */
#ifndef MS_EXEC_SOCKETS_H
#define MS_EXEC_SOCKETS_H

#include "base/diag.h"

#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define MS_GREETING_S                                                                    \
    5.0 /* for whoever comes to say who it is, and to reach one address */

typedef struct ms_patience {
    double until_s;
    volatile const int *interrupted; /* set by a signal; NULL: never */
} ms_patience;

ms_patience ms_patience_for(double seconds, volatile const int *interrupted);
/* No longer than `seconds`. */
ms_patience ms_patience_within(const ms_patience *patience, double seconds);
bool ms_patience_interrupted(const ms_patience *patience);

/* Of a call that is to be made again. */
bool ms_socket_is_transient(int error);
/* Of accept: who came is gone, and the next may be not. */
bool ms_socket_is_of_comer(int error);
/* Does not block, is left to no child, does not gather small messages. -1: errno says why. */
int ms_socket_prepare(int socket);

/* Looks once at several, for a tenth of a second at most: MS_OK, whether or not one is ready. */
ms_status ms_socket_look(const ms_patience *patience, struct pollfd *sockets, nfds_t num);
/* All of the bytes. */
ms_status ms_socket_put(const ms_patience *patience, int socket, const void *bytes,
                        size_t num);
ms_status ms_socket_get(const ms_patience *patience, int socket, void *bytes, size_t num);
/* To the first address that answers. MS_EIO: `error` says why not. */
ms_status ms_socket_reach(const ms_patience *patience, const struct addrinfo *found,
                          int *out, int *error);

/* A listener at the first address that is free, -1: `error` says why not. */
int ms_socket_listen(const struct addrinfo *found, int *error);
/* At a port that the system chooses: of all addresses of this machine, or for itself alone. */
int ms_socket_listen_anywhere(bool is_local, long *port, int *error);

#define MS_HOST_TEXT 64
/* The other end in digits; "": not known. */
void ms_socket_peer(int socket, char text[MS_HOST_TEXT]);
/* "127.0.0.1", "::1" and the like. */
bool ms_host_is_local(const char *digits);
/* An address in digits, or a name; NULL: not found, `why` says so. To be freed by freeaddrinfo. */
struct addrinfo *ms_host_find(const char *name, long port, const char **why);

#endif
