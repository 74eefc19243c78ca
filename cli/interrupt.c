/* SA_RESETHAND restores the default action, so the second signal ends the program. */
#include "cli/interrupt.h"

#include "base/diag.h"

#include <stddef.h>
#include <unistd.h>

volatile sig_atomic_t ms_interrupted;
static volatile sig_atomic_t limit_s;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    ms_interrupted = 1;
    if (limit_s > 0)
        (void)alarm((unsigned)limit_s);
}

static void on_limit(int signal_number)
{
    static const char text[] = "error: interrupted, and ended by force\n";
    (void)signal_number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(MS_EIO);
    _exit(MS_EINTERRUPTED);
}

static void take(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigaction(signal_number, &action, NULL);
}

void ms_interrupt_end_within(int seconds, bool takes_termination)
{
    take(SIGALRM, on_limit);
    limit_s = seconds;
    if (takes_termination)
        take(SIGTERM, on_interrupt);
}

void ms_interrupt_install(void)
{
    take(SIGINT, on_interrupt);
    take(SIGUSR1, on_interrupt);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    (void)sigaction(SIGPIPE, &ignore, NULL);
}
