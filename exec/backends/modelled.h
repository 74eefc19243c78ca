/* The modelled backend: one rank of a plan executes its exact shapes alone, on the CPU.
 * Kernels are real. A transfer takes its predicted time and overlaps kernels as streams
 * allow; what other ranks would have sent is made up from the rank's own data with random
 * signs, or drawn at random. Messages between pipeline stages have arrived when they are
 * asked for: the schedule's replay adds their time (exec/runner/recompose.h). */
#ifndef MS_EXEC_BACKENDS_MODELLED_H
#define MS_EXEC_BACKENDS_MODELLED_H

#include "exec/core/backend.h"

/* Carries only the rank job->replayed_rank. Its clock counts the time of kernels and the
 * predicted time of exposed transfers; work that stands in for other ranks stops it. */
extern const ms_backend ms_backend_modelled;
/* The backend for tests: kernels are executed, but the clock counts their predicted
 * times. */
extern const ms_backend ms_backend_modelled_untimed;

#endif
