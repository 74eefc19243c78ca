/* Interrupts. SIGINT asks a command to stop and print its partial results. So does
 * SIGUSR1, which mpiexec passes on to ranks and which batch systems send before their
 * time limit. A further SIGINT, half a second or more later, ends the program at once
 * (MS_EINTERRUPTED). */
#ifndef MS_CLI_OPTIONS_INTERRUPT_H
#define MS_CLI_OPTIONS_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* Not zero after the first interrupt. Long commands test it between pieces of work, print
 * their partial results and return MS_EINTERRUPTED. */
extern volatile sig_atomic_t ms_interrupted;

/* Installs signal handlers, and makes a closed pipe a write error instead of a signal. */
void ms_interrupt_install(void);

/* Ends the program at the latest `seconds` after the first interrupt, even without
 * results, because a kernel may take longer. With `takes_termination` SIGTERM is an
 * interrupt too; ranks leave it out, because a launcher ends them by SIGTERM when another
 * has failed. */
void ms_interrupt_end_within(int seconds, bool takes_termination);

#endif
