#include "exec/rendezvous_priv.h"

#include "base/number.h"

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE "meshsim meeting 1"

static void own_name(char name[MS_HOST_TEXT])
{
    name[0] = '\0';
    (void)gethostname(name, MS_HOST_TEXT);
    name[MS_HOST_TEXT - 1] = '\0';
}

/* ---- rank 0 ---- */

/* Addresses of this machine that others may reach, in digits; those within one network
 * segment alone have a '%'. */
static void write_addresses(FILE *file)
{
    struct ifaddrs *all = NULL;
    int num = 0;
    if (getifaddrs(&all) != 0)
        return;
    for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next) {
        char text[MS_HOST_TEXT];
        int family = one->ifa_addr == NULL ? AF_UNSPEC : one->ifa_addr->sa_family;
        if (family != AF_INET && family != AF_INET6)
            continue;
        socklen_t length =
            family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
        if (getnameinfo(one->ifa_addr, length, text, sizeof text, NULL, 0,
                        NI_NUMERICHOST) != 0 ||
            strchr(text, '%') != NULL || ms_host_is_local(text))
            continue;
        if (num++ < MS_MEETING_ADDRESSES - 1)
            fprintf(file, "%s\n", text);
    }
    freeifaddrs(all);
}

static ms_status cannot_write(ms_ctx *cx, const char *path)
{
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "rank 0 cannot write %s, where ranks meet: %s",
                   path, strerror(errno));
}

ms_status ms_meeting_file_write(ms_ctx *cx, const char *path, long port,
                                const char nonce[MS_NONCE_TEXT])
{
    char *other = ms_arena_printf(cx->arena, "%s.XXXXXX", path);
    char host[MS_HOST_TEXT];
    int descriptor = mkstemp(other); /* for its owner alone */
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    if (file == NULL) {
        ms_status status = cannot_write(cx, path);
        if (descriptor >= 0)
            (void)close(descriptor);
        return status;
    }
    own_name(host);
    fprintf(file, "%s\n%s\n%ld\n%s\n", FIRST_LINE, nonce, port, host);
    write_addresses(file);
    bool written = ferror(file) == 0;
    written = fclose(file) == 0 && written;
    if (written && rename(other, path) == 0)
        return MS_OK;
    ms_status status = cannot_write(cx, path);
    (void)unlink(other);
    return status;
}

/* ---- both ---- */

/* Without its end; false: there is none, or it is too long. */
static bool read_line(FILE *file, char *line, int room)
{
    if (fgets(line, room, file) == NULL)
        return false;
    size_t length = strcspn(line, "\n");
    bool whole = line[length] == '\n';
    line[length] = '\0';
    return whole;
}

/* Whether such a file is there, by the run whose word this is; NULL: by any. */
static bool is_by(const char *path, const char *nonce)
{
    char line[MS_HOST_TEXT], word[MS_NONCE_TEXT];
    FILE *file = fopen(path, "r");
    bool is_one = file != NULL && read_line(file, line, sizeof line) &&
                  strcmp(line, FIRST_LINE) == 0;
    if (nonce != NULL)
        is_one = is_one && read_line(file, word, sizeof word) && strcmp(word, nonce) == 0;
    if (file != NULL)
        (void)fclose(file);
    return is_one;
}

ms_status ms_meeting_file_clear(ms_ctx *cx, const char *path)
{
    struct stat at;
    if (stat(path, &at) != 0)
        return MS_OK;
    if (S_ISREG(at.st_mode) && (at.st_size == 0 || is_by(path, NULL))) {
        (void)unlink(path);
        return MS_OK;
    }
    return ms_fail(cx, MS_EIO, MS_NOWHERE,
                   "rank 0 does not write over %s, where ranks are to meet: it is "
                   "something else",
                   path);
}

void ms_meeting_file_remove(const char *path, const char nonce[MS_NONCE_TEXT])
{
    if (is_by(path, nonce))
        (void)unlink(path);
}

/* ---- others ---- */

static bool read_all(FILE *file, ms_meeting_file *out)
{
    char line[MS_HOST_TEXT + 1], host[MS_HOST_TEXT]; /* names may fill theirs */
    if (!read_line(file, line, sizeof line) || strcmp(line, FIRST_LINE) != 0 ||
        !read_line(file, out->nonce, sizeof out->nonce) ||
        !read_line(file, line, sizeof line))
        return false;
    out->port = strtol(line, NULL, 10);
    if (!read_line(file, line, sizeof line))
        return false;
    own_name(host);
    if (strcmp(line, host) == 0)
        snprintf(out->addresses[out->num_addresses++], MS_HOST_TEXT, "127.0.0.1");
    while (out->num_addresses < MS_MEETING_ADDRESSES &&
           read_line(file, out->addresses[out->num_addresses], MS_HOST_TEXT))
        out->num_addresses++;
    return out->port > 0 && out->port < 65536;
}

bool ms_meeting_file_read(const char *path, ms_meeting_file *out)
{
    *out = (ms_meeting_file){0};
    FILE *file = fopen(path, "r");
    bool is_one = file != NULL && read_all(file, out);
    if (file != NULL)
        (void)fclose(file);
    return is_one;
}
