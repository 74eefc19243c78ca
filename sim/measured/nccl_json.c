/* Reads the JSON that nccl-tests writes with option -J (src/util.cu): devices, their
 * hosts, and a result per size. Members that no row needs are passed over. */
#include "sim/measured/measured_priv.h"

#include <ctype.h>
#include <string.h>

#define MAX_VALUE 1e18

static ms_status require(ms_ctx *cx, ms_jval object, const char *key, ms_jval *out)
{
    *out = (ms_jval){0};
    if (ms_json_is_object(object) && ms_json_member(cx, object, key, out))
        return MS_OK;
    return ms_json_fail(cx, object, "\"%s\" is missing", key);
}

static ms_status require_array(ms_ctx *cx, ms_jval object, const char *key, ms_jval *out)
{
    MS_TRY(require(cx, object, key, out));
    return ms_json_is_array(*out) ? MS_OK : ms_json_fail(cx, *out, "must be an array");
}

/* Copies the text of a member; NULL where it is absent or no text. */
static ms_status text_of(ms_ctx *cx, ms_jval object, const char *key, const char **out)
{
    ms_jval value;
    *out = NULL;
    if (!ms_json_member(cx, object, key, &value) || !ms_json_is_string(value))
        return MS_OK;
    MS_TRY(ms_json_text(cx, value, out));
    *out = ms_arena_strdup(cx->arena, *out);
    return MS_OK;
}

/* Sets the collective by the words of the command. */
static void find_collective(const char *text, ms_nccl_test *test)
{
    while (test->collective == NULL && *text != '\0') {
        size_t length = strcspn(text, " \t");
        test->collective = ms_nccl_collective(text, length);
        text += length + strspn(text + length, " \t");
    }
}

static ms_status read_command(ms_ctx *cx, ms_jval root, ms_nccl_test *test)
{
    ms_jval args, env;
    const char *text = NULL;
    MS_TRY(text_of(cx, root, "args", &text));
    if (text != NULL)
        find_collective(text, test);
    if (ms_json_member(cx, root, "args", &args) && ms_json_is_array(args)) {
        for (int i = 0; i < ms_json_length(args); i++) {
            ms_jval word = ms_json_element(cx, args, i);
            MS_TRY(ms_json_text(cx, word, &text));
            find_collective(text, test);
        }
    }
    if (!ms_json_member(cx, root, "env", &env) || !ms_json_is_object(env))
        return MS_OK;
    MS_TRY(text_of(cx, env, "NCCL_ALGO", &test->algorithm));
    if (test->algorithm == NULL)
        return MS_OK;
    char *copy = ms_arena_strdup(cx->arena, test->algorithm);
    for (char *at = copy; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
    test->algorithm = copy;
    return MS_OK;
}

static ms_status read_devices(ms_measured_reader *r, ms_jval root, ms_nccl_test *test)
{
    ms_ctx *cx = r->cx;
    ms_jval devices, group;
    MS_TRY(require_array(cx, root, "devices", &devices));
    for (int i = 0; i < ms_json_length(devices); i++) {
        ms_jval device = ms_json_element(cx, devices, i), host_value;
        const char *host = NULL, *gpu = NULL, *group_text = NULL;
        MS_TRY(require(cx, device, "hostname", &host_value));
        MS_TRY(ms_json_text(cx, host_value, &host));
        MS_TRY(text_of(cx, device, "device_info", &gpu));
        if (ms_json_member(cx, device, "group", &group)) {
            long number = 0;
            MS_TRY(ms_json_integer(cx, group, 0, 1L << 30, &number));
            group_text = ms_arena_printf(cx->arena, "%ld", number);
        }
        MS_TRY(ms_nccl_add_rank(r, test, (ms_nccl_place){.value = device}, host,
                                group_text, gpu));
    }
    return MS_OK;
}

static ms_status read_result(ms_ctx *cx, ms_jval result, ms_nccl_row *row)
{
    ms_jval value, half;
    row->place = (ms_nccl_place){.value = result};
    MS_TRY(require(cx, result, "size", &value));
    MS_TRY(ms_json_number(cx, value, 0.0, MAX_VALUE, &row->size_bytes));
    MS_TRY(require(cx, result, "out_of_place", &half));
    MS_TRY(require(cx, half, "time", &value));
    MS_TRY(ms_json_number(cx, value, 0.0, MAX_VALUE, &row->time_us));
    if (!(row->time_us > 0.0))
        return ms_json_fail(cx, value, "a time must be above 0 us");
    if (ms_json_member(cx, half, "nwrong", &value) && !ms_json_is_null(value) &&
        !ms_json_is_string(value))
        MS_TRY(ms_json_number(cx, value, 0.0, MAX_VALUE, &row->wrong));
    return MS_OK;
}

static ms_status read_document(ms_measured_reader *r, ms_jval root)
{
    ms_nccl_test test = {0};
    ms_jval results;
    MS_TRY(read_command(r->cx, root, &test));
    MS_TRY(read_devices(r, root, &test));
    MS_TRY(require_array(r->cx, root, "results", &results));
    for (int i = 0; i < ms_json_length(results); i++) {
        ms_nccl_row row = {0};
        MS_TRY(read_result(r->cx, ms_json_element(r->cx, results, i), &row));
        MS_TRY(ms_nccl_add_row(r, &test, &row));
    }
    return MS_OK;
}

ms_status ms_nccl_read_json(ms_measured_reader *r, const char *text, size_t length)
{
    ms_jdoc *doc;
    ms_jval root = {0};
    MS_TRY(ms_json_parse(r->cx, r->options->name, text, length, &doc, &root));
    ms_status status = read_document(r, root);
    ms_json_close(doc);
    return status;
}
