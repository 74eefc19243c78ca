#include "cli/options/interrupt.h"

#include "base/clock.h"
#include "base/diag.h"

#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

/* Seconds after the first interrupt in which later ones are ignored: they may be copies,
 * as launchers pass on a signal that the whole process group has received. */
#define COPY_WITHIN_S 0.5

volatile sig_atomic_t ms_interrupted;
static volatile sig_atomic_t limit_s;
/* time of the first interrupt by ms_clock_s; set before ms_interrupted */
static _Atomic double first_at_s;

static void on_limit(int signal_number)
{
    static const char text[] = "error: interrupted, and ended by force\n";
    (void)signal_number;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(MS_EIO);
    _exit(MS_EINTERRUPTED);
}

/* First interrupt: starts the time limit. A later SIGINT or SIGTERM: ends the program. */
static void on_interrupt(int signal_number)
{
    if (!ms_interrupted) {
        first_at_s = ms_clock_s();
        ms_interrupted = 1;
        if (limit_s > 0)
            (void)alarm((unsigned)limit_s);
    } else if (signal_number != SIGUSR1 && ms_clock_s() - first_at_s > COPY_WITHIN_S) {
        on_limit(signal_number);
    }
}

static void take(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    const int all[] = {SIGINT, SIGTERM, SIGUSR1}; /* blocked while a handler runs */
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        (void)sigaddset(&action.sa_mask, all[i]);
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
