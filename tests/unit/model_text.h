/* For tests of readers of model files: a model file as text, and the error message of
 * a wrong one. */
#ifndef MS_TESTS_UNIT_MODEL_TEXT_H
#define MS_TESTS_UNIT_MODEL_TEXT_H

#include "costmodel/model/model.h"
#include "tests/test.h"

#include <string.h>

static inline ms_status read_model(ms_ctx *cx, const char *text, ms_model *out)
{
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_json_parse(cx, "m.json", text, strlen(text), &doc, &root));
    ms_status status = ms_model_read(cx, root, "m", out);
    ms_json_close(doc);
    return status;
}

static inline void expect_message(ms_ctx *cx, const char *message)
{
    const char *messages = test_messages(cx);
    if (strstr(messages, message) == NULL)
        fail_msg("no \"%s\" in:\n%s", message, messages);
}

static inline void expect_model_error(const char *text, const char *message)
{
    ms_ctx *cx = test_cx();
    ms_model model;
    ASSERT_INT(read_model(cx, text, &model), MS_EINPUT);
    expect_message(cx, message);
}

#endif
