/* Tables of published training runs and measurements, read from files. */
#ifndef MS_TESTS_SUPPORT_RUN_TABLES_H
#define MS_TESTS_SUPPORT_RUN_TABLES_H

#include "sim/validate/collective_rows.h"
#include "sim/validate/pubrun.h"

ms_status ms_pubruns_load(ms_ctx *cx, const char *path, ms_pubruns *out);
ms_status ms_collective_rows_load(ms_ctx *cx, const char *path, ms_collective_rows *out);

#endif
