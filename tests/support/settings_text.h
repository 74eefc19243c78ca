/* Settings of configuration files, as tests compare them. */
#ifndef MS_TESTS_SUPPORT_SETTINGS_TEXT_H
#define MS_TESTS_SUPPORT_SETTINGS_TEXT_H

#include "costmodel/port/port.h"

/* A reader of settings: ms_yaml_read, ms_toml_read. */
typedef ms_status (*settings_reader)(ms_ctx *cx, const char *name, const char *text,
                                     size_t size, ms_port_settings *out);

/* "key=value" of each setting of a text, a line each; fails the test if it is refused. */
const char *settings_text(settings_reader read, const char *name, const char *text);
/* Fails the test unless a text is refused with `message` among the messages. */
void expect_refused(settings_reader read, const char *name, const char *text,
                    const char *message);

#endif
