/* The program: finds the command, runs it, prints its diagnostics; the status is the
 * exit code. */
#include "cli/options/commands.h"
#include "cli/options/interrupt.h"
#include "cli/options/output.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `meshsim --help` and `meshsim --version` are what people try first. */
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
        ms_status status =
            ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                    "the first argument must be a command, not \"%s\"", word);
        ms_hint(cx, "\"meshsim help\" lists the commands");
        return status;
    }
    const ms_command *command = ms_command_find(word);
    if (command == NULL)
        return ms_command_unknown(cx, word);
    ms_args args = {.command = command, .argc = argc - 2, .argv = argv + 2};
    return command->run(cx, &args);
}

/* Without the exit handlers of libraries: that of OpenBLAS waits for its threads, and one
 * that found no memory for its buffer tries for ever. Sanitizers look for leaks in
 * theirs. */
static _Noreturn void end(int code)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    (void)fflush(NULL);
    _exit(code);
#endif
    exit(code);
}

/* A stream that the caller closed would be the next file that is opened, and results
 * would go into it. One that cannot be written, or read, fails as a closed one does. */
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
    (void)setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* ranks share it: whole lines */
    ms_interrupt_install();
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_status status = run(&cx, argc, argv);
    if (status == MS_EIO && ms_interrupted)
        status = MS_EINTERRUPTED; /* a read or write that the signal broke off */
    ms_diag_print(&cx, stderr);
    ms_arena_close(cx.arena);
    if (status == MS_EIO && ms_output_reader_is_gone()) {
        (void)signal(SIGPIPE, SIG_DFL); /* as programs end that do not write on */
        (void)raise(SIGPIPE);
    }
    end((int)status);
}
