#include "tests/support/settings_text.h"

#include "tests/test.h"

const char *settings_text(settings_reader read, const char *name, const char *text)
{
    ms_ctx *cx = test_cx();
    ms_port_settings settings = {0};
    ASSERT_OK(read(cx, name, text, strlen(text), &settings), cx);
    const char *out = "";
    for (int i = 0; i < settings.num; i++)
        out = ms_arena_printf(cx->arena, "%s%s%s=%s", out, i == 0 ? "" : "\n",
                              settings.rows[i].key, settings.rows[i].value);
    return out;
}

void expect_refused(settings_reader read, const char *name, const char *text,
                    const char *message)
{
    ms_ctx *cx = test_cx();
    ms_port_settings settings = {0};
    ASSERT_INT(read(cx, name, text, strlen(text), &settings), MS_EINPUT);
    if (strstr(test_messages(cx), message) == NULL)
        fail_msg("\"%s\" is not in %s", message, test_messages(cx));
}
