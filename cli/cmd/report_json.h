/* meshsim report: fields of a result file that it may lack. */
#ifndef MS_CLI_CMD_REPORT_JSON_H
#define MS_CLI_CMD_REPORT_JSON_H

#include "base/json.h"

/* The number under a key; NaN if the key is missing or null. */
ms_status ms_report_number(ms_ctx *cx, ms_jval object, const char *key, double *out);
/* The text under a key, in cx->arena; NULL if the key is missing or null. */
ms_status ms_report_text(ms_ctx *cx, ms_jval object, const char *key, const char **out);
/* The truth value under a key; false if the key is missing or null. */
ms_status ms_report_bool(ms_ctx *cx, ms_jval object, const char *key, bool *out);
/* The member under a key, or a value without members if there is none. */
ms_jval ms_report_member(ms_ctx *cx, ms_jval object, const char *key);

#endif
