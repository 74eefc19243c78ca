/* From a star round rank 0 to sockets between all: each rank but 0 listens, comes to
 * those before it, and takes those after it. Rank 1 takes at once, so nobody waits for ever. */
#include "exec/rendezvous_priv.h"

#include <string.h>
#include <unistd.h>

/* Where a rank listens, as rank 0 sees it. */
typedef struct place {
    char host[MS_HOST_TEXT]; /* "": on the machine of rank 0 */
    long port;
} place;

static ms_status lost(ms_ctx *cx, const ms_rendezvous *r, long rank, ms_status status)
{
    return status != MS_EIO
               ? status
               : ms_fail(cx, MS_EIO, MS_NOWHERE, "rank %ld is gone, or silent for %g s",
                         rank, r->timeout_s);
}

static bool all_are_local(const ms_rendezvous *r)
{
    for (long rank = 1; rank < r->size; rank++) {
        char host[MS_HOST_TEXT];
        ms_socket_peer(r->sockets[rank], host);
        if (!ms_host_is_local(host))
            return false;
    }
    return true;
}

/* Rank 0 collects the places of all, and tells them. */
static ms_status share_places(ms_ctx *cx, const ms_rendezvous *r, place *all)
{
    ms_patience patience = ms_rendezvous_patience(r);
    size_t bytes = (size_t)r->size * sizeof *all;
    if (r->rank > 0) {
        ms_status status =
            ms_socket_put(&patience, r->sockets[0], &all[r->rank], sizeof *all);
        if (status == MS_OK)
            status = ms_socket_get(&patience, r->sockets[0], all, bytes);
        return lost(cx, r, 0, status);
    }
    for (long rank = 1; rank < r->size; rank++) {
        MS_TRY(lost(cx, r, rank,
                    ms_socket_get(&patience, r->sockets[rank], &all[rank], sizeof *all)));
        ms_socket_peer(r->sockets[rank], all[rank].host);
        if (ms_host_is_local(all[rank].host))
            all[rank].host[0] = '\0';
    }
    for (long rank = 1; rank < r->size; rank++)
        MS_TRY(lost(cx, r, rank, ms_socket_put(&patience, r->sockets[rank], all, bytes)));
    return MS_OK;
}

static ms_status come_to(ms_ctx *cx, ms_rendezvous *r, long rank, const place *at)
{
    char host[MS_HOST_TEXT], said[MS_RENDEZVOUS_TEXT] = "";
    const char *why = "";
    int error = 0;
    ms_patience patience = ms_rendezvous_patience(r);
    ms_socket_peer(r->sockets[0], host);
    if (at->host[0] != '\0')
        snprintf(host, sizeof host, "%s", at->host);
    struct addrinfo *found = ms_host_find(host, at->port, &why);
    ms_status status = MS_EIO;
    if (found != NULL) {
        status = ms_socket_reach(&patience, found, &r->sockets[rank], &error);
        freeaddrinfo(found);
        why = strerror(error);
    }
    if (status == MS_OK) {
        why = "it does not answer";
        status = ms_rendezvous_greet(r, &patience, r->sockets[rank], r->nonce, said);
    }
    if (status != MS_EIO)
        return status;
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank %ld is not reached at %s, port %ld: %s",
                   rank, host, at->port, said[0] != '\0' ? said : why);
}

static ms_status connect_others(ms_ctx *cx, ms_rendezvous *r, bool is_local)
{
    place *all = MS_NEW_ARRAY(cx->arena, r->size, place);
    int error = 0, listener = -1;
    if (r->rank > 0) {
        listener = ms_socket_listen_anywhere(is_local, &all[r->rank].port, &error);
        if (listener < 0) {
            return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank %ld cannot listen: %s", r->rank,
                           strerror(error));
        }
    }
    ms_status status = share_places(cx, r, all);
    for (long rank = 1; rank < r->rank && status == MS_OK; rank++)
        status = come_to(cx, r, rank, &all[rank]);
    if (status == MS_OK && r->rank > 0)
        status = ms_rendezvous_take_all(cx, r, listener, r->rank + 1, true);
    if (listener >= 0)
        (void)close(listener);
    return status;
}

ms_status ms_rendezvous_connect_all(ms_ctx *cx, ms_rendezvous *r)
{
    char text[MS_RENDEZVOUS_TEXT] = "";
    if (r->rank == 0 && all_are_local(r))
        snprintf(text, sizeof text, "local");
    MS_TRY(ms_rendezvous_tell_all(cx, r, text));
    return connect_others(cx, r, strcmp(text, "local") == 0);
}
