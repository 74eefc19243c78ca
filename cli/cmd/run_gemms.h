/* The file of --gemm-algorithms, of `run` and `calibrate`. */
#ifndef MS_CLI_CMD_RUN_GEMMS_H
#define MS_CLI_CMD_RUN_GEMMS_H

#include "exec/core/backend.h"
#include "exec/cuda/cuda_gemm_choices.h"

/* Reads the file; *out is NULL without a path or a GPU. GEMMs that it lacks are timed only
 * if this process is the only one (`is_alone`): processes could choose differently. */
ms_status ms_run_gemms_open(ms_ctx *cx, const char *path, const ms_backend *backend,
                            bool is_alone, ms_cuda_gemm_choices **out);

/* Writes the file anew if GEMMs were timed, and closes `choices`. Returns `status`, or
 * MS_EIO if the file cannot be written. */
ms_status ms_run_gemms_close(ms_ctx *cx, const char *path, ms_cuda_gemm_choices *choices,
                             ms_status status);

#endif
