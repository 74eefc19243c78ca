#include "cli/cmd/report_json.h"

#include <math.h>

#define MAX_NUMBER 1e300

/* Whether the object has the key with a value other than null. */
static bool is_known(ms_ctx *cx, ms_jval object, const char *key, ms_jval *out)
{
    return ms_json_is_object(object) && ms_json_member(cx, object, key, out) &&
           !ms_json_is_null(*out);
}

ms_status ms_report_number(ms_ctx *cx, ms_jval object, const char *key, double *out)
{
    ms_jval value;
    *out = NAN;
    return is_known(cx, object, key, &value)
               ? ms_json_number(cx, value, -MAX_NUMBER, MAX_NUMBER, out)
               : MS_OK;
}

ms_status ms_report_text(ms_ctx *cx, ms_jval object, const char *key, const char **out)
{
    ms_jval value;
    *out = NULL;
    if (!is_known(cx, object, key, &value))
        return MS_OK;
    MS_TRY(ms_json_text(cx, value, out));
    *out = ms_arena_strdup(cx->arena, *out);
    return MS_OK;
}

ms_status ms_report_bool(ms_ctx *cx, ms_jval object, const char *key, bool *out)
{
    ms_jval value;
    *out = false;
    return is_known(cx, object, key, &value) ? ms_json_bool(cx, value, out) : MS_OK;
}

ms_jval ms_report_member(ms_ctx *cx, ms_jval object, const char *key)
{
    ms_jval value;
    return is_known(cx, object, key, &value) ? value : (ms_jval){0};
}
