/* main of meshsim: finds the command, runs it, prints its diagnostics; the status is the
 * exit code. Folder cli/cmd holds main and one file per command. */
#include "cli/options/commands.h"
#include "cli/options/interrupt.h"
#include "cli/options/output.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Maps `meshsim --help` and `meshsim --version` to the commands help and version. */
static const char *command_word(const char *argument)
{
    if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0)
        return "help";
    return strcmp(argument, "--version") == 0 ? "version" : argument;
}

static ms_status run(ms_ctx *cx, int argc, char **argv)
{
    const char *word = command_word(argv[1]);
    if (word[0] == '-') {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "the first argument must be a command, not \"%s\"", word);
        return ms_hint(cx, "\"meshsim help\" lists the commands");
    }
    const ms_command *command = ms_command_find(cx, word);
    if (command == NULL)
        return MS_EINPUT;
    ms_args args = {.command = command, .argc = argc - 2, .argv = argv + 2};
    return command->run(cx, &args);
}

/* Ends the process without libraries' exit handlers: OpenBLAS's handler waits for
 * threads, perhaps forever when memory is short. Sanitizers need handlers, to find
 * leaks. */
static _Noreturn void end(int code)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    (void)fflush(NULL);
    _exit(code);
#endif
    exit(code);
}

/* Opens each standard stream that the caller closed so that using it fails: otherwise the
 * next opened file would take its number and receive output meant for the stream. */
static void hold_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    hold_streams();
    if (argc < 2) {
        ms_help_print_short(stderr);
        return MS_EINPUT;
    }
    (void)setvbuf(stderr, NULL, _IOLBF,
                  BUFSIZ); /* ranks share stderr: print whole lines */
    ms_interrupt_install();
    ms_ctx cx = {.arena = ms_arena_open(), .interrupted = &ms_interrupted};
    ms_status status = run(&cx, argc, argv);
    if (status == MS_EIO && ms_interrupted)
        status = MS_EINTERRUPTED; /* the signal broke off a read or write */
    ms_diag_print(&cx, stderr);
    ms_arena_close(cx.arena);
    if (status == MS_EIO && ms_output_reader_is_gone()) {
        /* ends as programs do by default when the reader of their output has gone */
        (void)signal(SIGPIPE, SIG_DFL);
        (void)raise(SIGPIPE);
    }
    end((int)status);
}
