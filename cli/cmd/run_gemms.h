/* The file of `run --gemm-algorithms`. */
#ifndef MS_CLI_CMD_RUN_GEMMS_H
#define MS_CLI_CMD_RUN_GEMMS_H

#include "cli/cmd/run_backend.h"
#include "exec/cuda/cuda_gemm_choices.h"

/* Reads the file; *out is NULL without the option or a GPU. GEMMs that it lacks are timed
 * only if this process is the run's only one: processes could choose differently. */
ms_status ms_run_gemms_open(ms_ctx *cx, const ms_run_flags *flags,
                            const ms_run_choice *choice, ms_cuda_gemm_choices **out);

/* Writes the file anew if GEMMs were timed, and closes `choices`. Returns `status`, or
 * MS_EIO if the file cannot be written. */
ms_status ms_run_gemms_close(ms_ctx *cx, const ms_run_flags *flags,
                             ms_cuda_gemm_choices *choices, ms_status status);

#endif
