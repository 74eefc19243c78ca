/* Output files of a run. */
#ifndef MS_CLI_CMD_RUN_FILES_H
#define MS_CLI_CMD_RUN_FILES_H

#include "cli/options/run_options.h"
#include "cli/report/run_report.h"

/* MS_EINPUT when two files of a run are the same, or an output other than -o is "-". */
ms_status ms_run_files_check(ms_ctx *cx, const ms_run_flags *flags, const char *output);

/* MS_EIO when one of the output files cannot be written; the check leaves no files. */
ms_status ms_run_files_check_writable(ms_ctx *cx, const ms_run_flags *flags,
                                      const char *output);

/* Writes the requested files after a run, which may have been interrupted, and notes how
 * its file of initial weights differs from its weights. */
ms_status ms_run_files_write(ms_ctx *cx, const ms_run_flags *flags,
                             const ms_runner_options *options,
                             const ms_run_report *report);

#endif
