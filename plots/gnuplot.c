#include "plots/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_MESSAGE_BYTES 4096

extern char **environ;

/* Reads gnuplot's messages from a pipe; keeps the first MAX_MESSAGE_BYTES - 1 bytes. */
static void read_messages(int from, char text[MAX_MESSAGE_BYTES])
{
    size_t length = 0;
    char rest[512];
    for (;;) {
        bool full = length == MAX_MESSAGE_BYTES - 1;
        ssize_t got = full ? read(from, rest, sizeof rest)
                           : read(from, text + length, MAX_MESSAGE_BYTES - 1 - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        length += full ? 0 : (size_t)got;
    }
    text[length] = '\0';
}

/* The line of gnuplot's messages with `"FILE" line 3: ERROR`, otherwise the last one. */
static const char *find_error_line(char *text)
{
    const char *last = "without a message";
    for (char *line = strtok(text, "\r\n"); line != NULL; line = strtok(NULL, "\r\n")) {
        const char *place = strstr(line, "\" line ");
        if (place != NULL)
            return place + 2;
        if (line[strspn(line, " \t^")] != '\0')
            last = line + strspn(line, " \t");
    }
    return last;
}

/* Starts gnuplot; returns 0 or an errno value. The pipe's ends close at exec. */
static int spawn(ms_arena *arena, const char *script, int out, int messages, pid_t *child)
{
    char program[] = "gnuplot", defaults[] = "-d", do_first[] = "-e";
    char to_stdout[] = "output = ''";
    char *argv[] = {
        program, defaults, do_first, to_stdout, ms_arena_strdup(arena, script), NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0)
        return error;
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null",
                                             O_RDONLY, 0);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (error == 0)
        error = posix_spawn_file_actions_adddup2(&actions, messages, STDERR_FILENO);
    if (error == 0)
        error = posix_spawnp(child, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static ms_status check_exit(ms_ctx *cx, int state, char *messages)
{
    if (WIFEXITED(state) && WEXITSTATUS(state) == 0)
        return MS_OK;
    if (WIFSIGNALED(state))
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "gnuplot was ended by signal %d",
                       WTERMSIG(state));
    return ms_fail(cx, MS_EIO, MS_NOWHERE, "gnuplot failed (exit %d): %s",
                   WEXITSTATUS(state), find_error_line(messages));
}

ms_status ms_gnuplot_run(ms_ctx *cx, const char *script, int out, bool *found)
{
    int ends[2];
    if (pipe(ends) != 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "gnuplot cannot be run: %s",
                       strerror(errno));
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    pid_t child;
    int error = spawn(cx->arena, script, out, ends[1], &child);
    close(ends[1]);
    char messages[MAX_MESSAGE_BYTES];
    if (error == 0)
        read_messages(ends[0], messages);
    close(ends[0]);
    *found = error != ENOENT;
    if (!*found)
        return MS_OK;
    if (error != 0)
        return ms_fail(cx, MS_EIO, MS_NOWHERE, "gnuplot cannot be run: %s",
                       strerror(error));
    int state = 0;
    while (waitpid(child, &state, 0) < 0)
        if (errno != EINTR)
            return ms_fail(cx, MS_EIO, MS_NOWHERE, "waiting for gnuplot failed: %s",
                           strerror(errno));
    return check_exit(cx, state, messages);
}
