/* Fuzzes the JSON reader: a document is read by a field table, and every value is
 * located. An accepted value must be found again at its own line and column. */
#include "base/json.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct target {
    const char *text;
    bool flag;
    long count;
    double number;
    double size_bytes;
    int choice;
} target;

static const char *const choices[] = {"one", "two", NULL};
static const ms_field fields[] = {
    {MS_FIELD_TEXT, "text", offsetof(target, text), .required = true},
    {MS_FIELD_BOOL, "flag", .offset = offsetof(target, flag)},
    {MS_FIELD_INTEGER, "count", offsetof(target, count), .low = -10, .high = 1e18},
    {MS_FIELD_NUMBER, "number", offsetof(target, number), .low = -INFINITY,
     .high = INFINITY},
    {MS_FIELD_QUANTITY, "size", offsetof(target, size_bytes), .unit = MS_UNIT_BYTES},
    {MS_FIELD_CHOICE, "choice", offsetof(target, choice), .choices = choices,
     .nullable = true},
    {0},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void visit(ms_ctx *cx, ms_jval value, int *num_left)
{
    ms_loc loc = ms_json_loc(cx, value);
    if (loc.line < 1 || loc.column < 1)
        abort();
    bool is_object = ms_json_is_object(value);
    if (!is_object && !ms_json_is_array(value))
        return;
    int length = ms_json_length(value);
    for (int i = 0; i < length && (*num_left)-- > 0; i++) {
        const char *key;
        visit(cx,
              is_object ? ms_json_entry(cx, value, i, &key)
                        : ms_json_element(cx, value, i),
              num_left);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_jdoc *doc;
    ms_jval root;
    if (ms_json_parse(&cx, "fuzz", (const char *)data, size, &doc, &root) == MS_OK) {
        target read = {0};
        int num_left = 200;
        visit(&cx, root, &num_left);
        ms_status status = ms_json_read(&cx, root, fields, &read);
        if ((status == MS_OK) != (cx.num_errors == 0))
            abort();
        ms_json_close(doc);
    } else if (cx.num_errors == 0) {
        abort();
    }
    FILE *sink = fopen("/dev/null", "w");
    if (sink != NULL) {
        ms_diag_print(&cx, sink);
        fclose(sink);
    }
    ms_arena_close(cx.arena);
    return 0;
}
