/* Files that a run leaves. */
#ifndef MS_CLI_CMD_RUN_FILES_H
#define MS_CLI_CMD_RUN_FILES_H

#include "cli/options/run_options.h"
#include "cli/report/run_report.h"

/* MS_EINPUT: two of the files, or an output and an input, are one; standard output is
 * asked for. MS_EIO: an output cannot be written. */
ms_status ms_run_files_check(ms_ctx *cx, const ms_run_flags *flags, const char *output);

/* MS_EIO: one of the outputs could not be written. Nothing is left behind. */
ms_status ms_run_files_check_writable(ms_ctx *cx, const ms_run_flags *flags,
                                      const char *output);

/* What flags ask for of the steps that were done. */
ms_status ms_run_files_write(ms_ctx *cx, const ms_run_flags *flags,
                             const ms_runner_options *options,
                             const ms_run_report *report);

#endif
