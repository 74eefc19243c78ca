/* Values of parsed JSON that a test expects to be there; each fails the test otherwise. */
#ifndef MS_TESTS_SUPPORT_JSON_VALUES_H
#define MS_TESTS_SUPPORT_JSON_VALUES_H

#include "base/json.h"
#include "tests/test.h"

/* The root of what was written to a temporary file, which is closed; the caller closes
 * *doc. */
static inline ms_jval test_json(ms_ctx *cx, FILE *file, ms_jdoc **doc)
{
    const char *text = test_read_back(cx->arena, file);
    ms_jval root;
    ASSERT_OK(ms_json_parse(cx, "result", text, strlen(text), doc, &root), cx);
    return root;
}

static inline ms_jval test_member(ms_ctx *cx, ms_jval object, const char *key)
{
    ms_jval out;
    if (!ms_json_member(cx, object, key, &out))
        fail_msg("there is no member \"%s\"", key);
    return out;
}

static inline const char *test_text(ms_ctx *cx, ms_jval object, const char *key)
{
    const char *text;
    ASSERT_OK(ms_json_text(cx, test_member(cx, object, key), &text), cx);
    return text;
}

static inline double test_number(ms_ctx *cx, ms_jval object, const char *key)
{
    double out;
    ASSERT_OK(ms_json_number(cx, test_member(cx, object, key), -INFINITY, INFINITY, &out),
              cx);
    return out;
}

#endif
