/* Profile and stack files with corrected figures: a file of configs/ copied value by
 * value, with new numbers and their provenance in place of those that were corrected. */
#ifndef MS_SIM_VALIDATE_FIT_FILES_H
#define MS_SIM_VALIDATE_FIT_FILES_H

#include "sim/validate/own_runs.h"

/* Writes the group's profile file, or its stack file, with the corrections of its fits.
 * `name` becomes the name in the file, and `table` is named as the source of the numbers.
 * MS_EIO or MS_EINPUT if the file of configs/ cannot be read. */
ms_status ms_fit_file_write(ms_ctx *cx, const ms_own_group *group, bool is_stack,
                            const char *name, const char *table, ms_jout *out);

#endif
