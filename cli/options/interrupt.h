/* SIGINT asks a command to stop and print what it has; so does SIGUSR1, which mpiexec
 * passes on to ranks and batch systems send before their time limit. After either, a
 * SIGINT that comes half a second later or more ends the program at once, without
 * results: MS_EINTERRUPTED. */
#ifndef MS_CLI_OPTIONS_INTERRUPT_H
#define MS_CLI_OPTIONS_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/* Not zero once one of them came. Long commands look at it between pieces of work, print
 * their partial results and return MS_EINTERRUPTED. */
extern volatile sig_atomic_t ms_interrupted;

/* Installs the handler, and makes a closed pipe a write error instead of a silent
 * death. */
void ms_interrupt_install(void);

/* From now on the program ends so many seconds after the first interrupt at the latest,
 * without results if it must: a kernel may take longer. SIGTERM is an interrupt too, when
 * asked for: of ranks it is how a launcher ends them when another has failed. */
void ms_interrupt_end_within(int seconds, bool takes_termination);

#endif
