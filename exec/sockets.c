#include "exec/sockets.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LOOK_UP_S 0.1  /* at an interrupt */
#define BACKLOG   4096 /* ranks that come at once; the system takes what it can */

/* ---- patience ---- */

ms_patience ms_patience_for(double seconds, volatile const int *interrupted)
{
    return (ms_patience){ms_clock_s() + seconds, interrupted};
}

ms_patience ms_patience_within(const ms_patience *patience, double seconds)
{
    ms_patience shorter = ms_patience_for(seconds, patience->interrupted);
    return shorter.until_s < patience->until_s ? shorter : *patience;
}

bool ms_patience_interrupted(const ms_patience *patience)
{
    return patience->interrupted != NULL && *patience->interrupted != 0;
}

/* ---- one socket ---- */

int ms_socket_prepare(int socket)
{
    int yes = 1;
    if (socket >= 0 && fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 &&
        fcntl(socket, F_SETFL, O_NONBLOCK) == 0) {
        (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        return socket;
    }
    int error = errno;
    if (socket >= 0)
        (void)close(socket);
    errno = error;
    return -1;
}

static int open_socket(const struct addrinfo *at)
{
    return ms_socket_prepare(socket(at->ai_family, at->ai_socktype, 0));
}

bool ms_socket_is_transient(int error)
{
    return error == EINTR || error == EAGAIN || error == EWOULDBLOCK;
}

bool ms_socket_is_of_comer(int error)
{
    return ms_socket_is_transient(error) || error == ECONNABORTED || error == EPROTO ||
           error == ENETDOWN || error == ENETUNREACH || error == EHOSTUNREACH;
}

ms_status ms_socket_look(const ms_patience *patience, struct pollfd *sockets, nfds_t num)
{
    double left_s = patience->until_s - ms_clock_s();
    if (ms_patience_interrupted(patience))
        return MS_EINTERRUPTED;
    if (left_s <= 0.0)
        return MS_EIO;
    int most_ms = left_s < LOOK_UP_S ? (int)(1e3 * left_s) + 1 : (int)(1e3 * LOOK_UP_S);
    int found = poll(sockets, num, most_ms);
    for (nfds_t i = 0; i < num && found < 0; i++)
        sockets[i].revents = 0;
    return found >= 0 || ms_socket_is_transient(errno) ? MS_OK : MS_EIO;
}

/* Without a message: MS_EIO: it is too late, or the other is gone or silent;
 * MS_EINTERRUPTED. Looks up between: another thread may have taken the signal. */
static ms_status wait_for_socket(const ms_patience *patience, int socket, short what)
{
    struct pollfd ready = {.fd = socket, .events = what};
    while (ready.revents == 0)
        MS_TRY(ms_socket_look(patience, &ready, 1));
    return MS_OK;
}

ms_status ms_socket_put(const ms_patience *patience, int socket, const void *bytes,
                        size_t num)
{
    for (size_t done = 0; done < num;) {
        MS_TRY(wait_for_socket(patience, socket, POLLOUT));
        ssize_t sent = send(socket, (const char *)bytes + done, num - done, MSG_NOSIGNAL);
        if (sent < 0 && !ms_socket_is_transient(errno))
            return MS_EIO;
        done += sent > 0 ? (size_t)sent : 0;
    }
    return MS_OK;
}

ms_status ms_socket_get(const ms_patience *patience, int socket, void *bytes, size_t num)
{
    for (size_t done = 0; done < num;) {
        MS_TRY(wait_for_socket(patience, socket, POLLIN));
        ssize_t came = recv(socket, (char *)bytes + done, num - done, 0);
        if (came == 0 || (came < 0 && !ms_socket_is_transient(errno)))
            return MS_EIO;
        done += came > 0 ? (size_t)came : 0;
    }
    return MS_OK;
}

/* MS_EIO: not now; `error` says why. */
static ms_status connect_to(const ms_patience *patience, const struct addrinfo *at,
                            int socket, int *error)
{
    socklen_t length = sizeof *error;
    ms_patience soon = ms_patience_within(patience, MS_GREETING_S);
    *error = connect(socket, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (*error != EINPROGRESS && *error != EINTR)
        return *error == 0 ? MS_OK : MS_EIO;
    *error = ETIMEDOUT;
    MS_TRY(wait_for_socket(&soon, socket, POLLOUT));
    if (getsockopt(socket, SOL_SOCKET, SO_ERROR, error, &length) != 0)
        *error = errno;
    return *error == 0 ? MS_OK : MS_EIO;
}

/* Who comes to a port of its own machine at which nobody listens may be given this very
 * port, and then meets itself. */
static bool is_its_own_peer(int socket)
{
    struct sockaddr_storage own, other;
    memset(&own, 0, sizeof own);
    memset(&other, 0, sizeof other);
    socklen_t own_length = sizeof own, other_length = sizeof other;
    return getsockname(socket, (struct sockaddr *)&own, &own_length) == 0 &&
           getpeername(socket, (struct sockaddr *)&other, &other_length) == 0 &&
           own_length == other_length && memcmp(&own, &other, own_length) == 0;
}

ms_status ms_socket_reach(const ms_patience *patience, const struct addrinfo *found,
                          int *out, int *error)
{
    ms_status status = MS_EIO;
    for (; found != NULL && status == MS_EIO; found = found->ai_next) {
        *out = open_socket(found);
        *error = errno;
        if (*out < 0)
            continue;
        status = connect_to(patience, found, *out, error);
        if (status == MS_OK && is_its_own_peer(*out)) {
            *error = ECONNREFUSED;
            status = MS_EIO;
        }
        if (status != MS_OK)
            (void)close(*out);
    }
    if (status != MS_OK)
        *out = -1;
    return status;
}

/* ---- listeners ---- */

int ms_socket_listen(const struct addrinfo *found, int *error)
{
    int yes = 1, no = 0;
    for (; found != NULL; found = found->ai_next) {
        int listener = open_socket(found);
        *error = errno;
        if (listener < 0)
            continue;
        (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        if (found->ai_family == AF_INET6)
            (void)setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
        if (bind(listener, found->ai_addr, found->ai_addrlen) == 0 &&
            listen(listener, BACKLOG) == 0)
            return listener;
        *error = errno;
        (void)close(listener);
    }
    return -1;
}

/* The system has IPv6, and takes IPv4 there, too; or it has none. */
static int listen_on_family(int family, bool is_local, int *error)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = in6addr_any};
    struct sockaddr_in four = {.sin_family = AF_INET};
    four.sin_addr.s_addr = htonl(is_local ? INADDR_LOOPBACK : INADDR_ANY);
    bool is_six = family == AF_INET6;
    struct addrinfo at = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    at.ai_addr = is_six ? (struct sockaddr *)&six : (struct sockaddr *)&four;
    at.ai_addrlen = is_six ? sizeof six : sizeof four;
    return ms_socket_listen(&at, error);
}

int ms_socket_listen_anywhere(bool is_local, long *port, int *error)
{
    struct sockaddr_storage at;
    socklen_t length = sizeof at;
    int listener = is_local ? -1 : listen_on_family(AF_INET6, false, error);
    if (listener < 0)
        listener = listen_on_family(AF_INET, is_local, error);
    if (listener < 0)
        return -1;
    if (getsockname(listener, (struct sockaddr *)&at, &length) != 0) {
        *error = errno;
        (void)close(listener);
        return -1;
    }
    *port = ntohs(at.ss_family == AF_INET6
                      ? ((const struct sockaddr_in6 *)(const void *)&at)->sin6_port
                      : ((const struct sockaddr_in *)(const void *)&at)->sin_port);
    return listener;
}

/* ---- addresses ---- */

#define IPV4_WITHIN_IPV6 "::ffff:"

void ms_socket_peer(int socket, char text[MS_HOST_TEXT])
{
    struct sockaddr_storage at;
    socklen_t length = sizeof at;
    char digits[MS_HOST_TEXT];
    text[0] = '\0';
    if (getpeername(socket, (struct sockaddr *)&at, &length) != 0 ||
        getnameinfo((const struct sockaddr *)&at, length, digits, sizeof digits, NULL, 0,
                    NI_NUMERICHOST) != 0)
        return;
    size_t within = strlen(IPV4_WITHIN_IPV6);
    bool is_four = strncmp(digits, IPV4_WITHIN_IPV6, within) == 0;
    snprintf(text, MS_HOST_TEXT, "%s", digits + (is_four ? within : 0));
}

bool ms_host_is_local(const char *digits)
{
    return strncmp(digits, "127.", 4) == 0 || strcmp(digits, "::1") == 0;
}

struct addrinfo *ms_host_find(const char *name, long port, const char **why)
{
    struct addrinfo *found, want = {.ai_socktype = SOCK_STREAM};
    char digits[24];
    snprintf(digits, sizeof digits, "%ld", port);
    int error = getaddrinfo(name, digits, &want, &found);
    *why = error == 0 ? "" : gai_strerror(error);
    return error == 0 ? found : NULL;
}
