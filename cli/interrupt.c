/* SA_RESETHAND restores the default action, so the second signal ends the program. */
#include "cli/interrupt.h"

#include <stddef.h>

volatile sig_atomic_t ms_interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    ms_interrupted = 1;
}

void ms_interrupt_install(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGUSR1, &action, NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    (void)sigaction(SIGPIPE, &ignore, NULL);
}
