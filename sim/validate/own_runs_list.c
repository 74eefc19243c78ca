/* Reads the list of constants that own runs correct: configs/fits/own-runs.json. */
#include "base/paths.h"
#include "sim/validate/own_runs.h"

#include <math.h>
#include <string.h>

static const char *const scale_names[] = {"log", "linear", NULL};

static const ms_field constant_fields[] = {
    {.kind = MS_FIELD_TEXT,
     .key = "name",
     .offset = offsetof(ms_own_constant, name),
     .required = true,
     .help = "name of the constant"},
    {.kind = MS_FIELD_CHOICE,
     .key = "measurement",
     .offset = offsetof(ms_own_constant, measurement),
     .choices = ms_measurement_names,
     .help = "measurement that corrects it; default: step time"},
    {.kind = MS_FIELD_ANY,
     .key = "of",
     .required = true,
     .help = "figures that it moves, as \"profile gemm.*.efficiency\""},
    {.kind = MS_FIELD_CHOICE,
     .key = "scale",
     .offset = offsetof(ms_own_constant, scale),
     .required = true,
     .choices = scale_names,
     .help = "log: the width is relative; linear: in the figure's base unit"},
    {.kind = MS_FIELD_NUMBER,
     .key = "width",
     .offset = offsetof(ms_own_constant, width),
     .required = true,
     .low = 1e-6,
     .high = 1e18,
     .help = "standard deviation of what is known beforehand"},
    {.kind = MS_FIELD_NUMBER,
     .key = "low",
     .offset = offsetof(ms_own_constant, low),
     .low = -1e18,
     .high = 1e18,
     .help = "least value of its figures"},
    {.kind = MS_FIELD_NUMBER,
     .key = "high",
     .offset = offsetof(ms_own_constant, high),
     .low = -1e18,
     .high = 1e18,
     .help = "greatest value of its figures"},
    {.kind = MS_FIELD_TEXT,
     .key = "source",
     .offset = offsetof(ms_own_constant, source),
     .required = true,
     .help = "where the width comes from"},
    {0}};

static ms_status read_pattern(ms_ctx *cx, ms_jval at, const char **out)
{
    MS_TRY(ms_json_text(cx, at, out));
    if (strncmp(*out, "profile ", 8) == 0 || strncmp(*out, "stack ", 6) == 0)
        return MS_OK;
    return ms_json_fail(cx, at,
                        "\"%s\" is no figure of a profile or stack, as in "
                        "\"profile link.frac\" or \"stack tp_overlap\"",
                        *out);
}

static ms_status read_constant(ms_ctx *cx, ms_jval at, ms_own_constant *out)
{
    ms_jval of;
    out->low = out->high = (double)NAN;
    MS_TRY(ms_json_read(cx, at, constant_fields, out));
    (void)ms_json_member(cx, at, "of", &of);
    int num = ms_json_is_array(of) ? ms_json_length(of) : 0;
    if (num == 0)
        return ms_json_fail(cx, of, "\"of\" is no list of figures");
    if (out->low >= out->high)
        return ms_json_fail(cx, at, "\"low\" and \"high\" do not ascend");
    out->patterns = MS_NEW_ARRAY(cx->arena, num, const char *);
    for (; out->num_patterns < num; out->num_patterns++)
        MS_TRY(read_pattern(cx, ms_json_element(cx, of, out->num_patterns),
                            &out->patterns[out->num_patterns]));
    return MS_OK;
}

ms_status ms_own_list_read(ms_ctx *cx, ms_jval root, ms_own_list *out)
{
    typedef struct file {
        int schema;
        double error[MS_NUM_MEASUREMENTS];
    } file;
    static const char *const schemas[] = {"meshsim.own_fits/1", NULL};
#define ERROR_FIELD(name, which)                                                         \
    {                                                                                    \
        .kind = MS_FIELD_NUMBER, .key = (name), .offset = offsetof(file, error[which]),  \
        .required = true, .low = 1e-3, .high = 1.0,                                      \
        .help = "scatter of ln(predicted / measured) within a group"                     \
    }
    static const ms_field fields[] = {
        {.kind = MS_FIELD_CHOICE,
         .key = "schema",
         .offset = offsetof(file, schema),
         .required = true,
         .choices = schemas,
         .help = ""},
        ERROR_FIELD("step_error", MS_MEASURED_STEP),
        ERROR_FIELD("peak_error", MS_MEASURED_PEAK),
        {.kind = MS_FIELD_ANY, .key = "step_error_source", .help = "its source"},
        {.kind = MS_FIELD_ANY, .key = "peak_error_source", .help = "its source"},
        {.kind = MS_FIELD_ANY,
         .key = "constants",
         .required = true,
         .help = "list of constants"},
        {0}};
    ms_jval list;
    file read = {0};
    *out = (ms_own_list){0};
    MS_TRY(ms_json_read(cx, root, fields, &read));
    memcpy(out->error, read.error, sizeof out->error);
    (void)ms_json_member(cx, root, "constants", &list);
    int num = ms_json_is_array(list) ? ms_json_length(list) : 0;
    if (num == 0 || num > MS_MAX_OWN_CONSTANTS)
        return ms_json_fail(cx, list, "\"constants\" is no list of 1 to %d constants",
                            MS_MAX_OWN_CONSTANTS);
    out->constants = MS_NEW_ARRAY(cx->arena, num, ms_own_constant);
    for (; out->num_constants < num; out->num_constants++)
        MS_TRY(read_constant(cx, ms_json_element(cx, list, out->num_constants),
                             &out->constants[out->num_constants]));
    return MS_OK;
}

ms_status ms_own_list_load(ms_ctx *cx, const char *name, ms_own_list *out)
{
    ms_jdoc *doc = NULL;
    ms_jval root;
    const char *path = NULL;
    MS_TRY(ms_config_resolve(cx, "fits", "list of constants", name, &path));
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_status status = ms_own_list_read(cx, root, out);
    ms_json_close(doc);
    return status;
}
