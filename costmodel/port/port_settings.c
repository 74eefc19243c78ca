/* Lists of settings: added on export, found and read as numbers, switches and words on
 * import. */
#include "costmodel/port/port_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- lists ---- */

void ms_port_add(ms_arena *arena, ms_port_settings *list, ms_port_setting setting)
{
    MS_MAKE_ROOM(arena, list->rows, list->num, list->capacity, 32);
    list->rows[list->num++] = setting;
}

void ms_port_assume(ms_port *port, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ms_texts_add(port->cx->arena, port->assumed,
                 ms_arena_vprintf(port->cx->arena, format, args));
    va_end(args);
}

bool ms_port_is_given(const ms_port *port, ms_choice choice)
{
    return port->given != NULL && port->given[choice];
}

void ms_port_leave_out(ms_port *port, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ms_texts_add(port->cx->arena, port->left_out,
                 ms_arena_vprintf(port->cx->arena, format, args));
    va_end(args);
}

void ms_port_leave_choice(ms_port *port, ms_choice choice)
{
    ms_port_leave_out(port, "%s %s", ms_plan_fields[choice].name,
                      ms_plan_value_text(port->cx->arena, port->plan, choice));
}

/* ---- export ---- */

void ms_port_put(ms_port *port, const char *key, const char *value)
{
    ms_port_add(port->cx->arena, port->settings,
                (ms_port_setting){.key = key, .value = value});
}

void ms_port_put_text(ms_port *port, const char *key, const char *value)
{
    ms_port_add(port->cx->arena, port->settings,
                (ms_port_setting){.key = key, .value = value, .quoted = true});
}

void ms_port_put_whole(ms_port *port, const char *key, long value)
{
    ms_port_put(port, key, ms_arena_printf(port->cx->arena, "%ld", value));
}

void ms_port_put_number(ms_port *port, const char *key, double value)
{
    char text[32];
    ms_port_put(port, key,
                ms_arena_strdup(port->cx->arena, ms_json_number_text(value, text)));
}

const char *ms_port_word_of(const ms_port_word *words, long value)
{
    for (; words->text != NULL; words++)
        if (words->value == value)
            return words->text;
    return NULL;
}

bool ms_port_since(const ms_port *port, long minor)
{
    const char *version = port->rules == NULL ? NULL : port->rules->version;
    const char *dot = version == NULL ? NULL : strchr(version, '.');
    return dot == NULL || strtol(dot + 1, NULL, 10) >= minor;
}

/* ---- import ---- */

ms_port_setting *ms_port_find(ms_port *port, const char *key)
{
    ms_port_setting *last = NULL;
    for (int i = 0; i < port->settings->num; i++)
        if (strcmp(port->settings->rows[i].key, key) == 0)
            last = &port->settings->rows[i];
    if (last != NULL)
        last->used = true;
    return last;
}

bool ms_port_has(ms_port *port, const char *key)
{
    return ms_port_find(port, key) != NULL;
}

ms_status ms_port_fail(ms_port *port, const ms_port_setting *setting, const char *format,
                       ...)
{
    va_list args;
    va_start(args, format);
    const char *text = ms_arena_vprintf(port->cx->arena, format, args);
    va_end(args);
    return ms_fail(port->cx, MS_EINPUT, setting->loc, "%s: %s", setting->key, text);
}

ms_status ms_port_fail_missing(ms_port *port, const char *key, const char *hint)
{
    const char *file = port->settings->num > 0 ? port->settings->rows[0].loc.file : NULL;
    ms_fail(port->cx, MS_EINPUT, (ms_loc){.file = file}, "%s is missing", key);
    return ms_hint(port->cx, "%s", hint);
}

/* A value that is read must be in the file. */
static ms_status check_settled(ms_port *port, const ms_port_setting *setting)
{
    if (!setting->unsettled)
        return MS_OK;
    ms_port_fail(port, setting, "its value \"%s\" is known only when the script runs",
                 setting->value == NULL ? "" : setting->value);
    return ms_hint(port->cx, "write the value that the run has in its place");
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words != NULL; words++)
        if (strcasecmp(text, *words) == 0)
            return true;
    return false;
}

ms_status ms_port_take_on(ms_port *port, const char *key, bool *out)
{
    static const char *const yes[] = {"true", "yes", "on", "1", NULL};
    static const char *const no[] = {"false", "no", "off", "0", NULL};
    const ms_port_setting *setting = ms_port_find(port, key);
    if (setting == NULL)
        return MS_OK;
    MS_TRY(check_settled(port, setting));
    *out = setting->value == NULL || is_one_of(setting->value, yes);
    return *out || is_one_of(setting->value, no)
               ? MS_OK
               : ms_port_fail(port, setting, "\"%s\" is neither true nor false",
                              setting->value);
}

/* Reads "500000", "1e-5" or "8_192". */
static bool read_number(const char *text, double *out)
{
    char digits[64];
    size_t num = 0;
    for (; *text != '\0' && num + 1 < sizeof digits; text++)
        if (*text != '_')
            digits[num++] = *text;
    digits[num] = '\0';
    char *end;
    errno = 0;
    *out = strtod(digits, &end);
    return num > 0 && *text == '\0' && *end == '\0' && isfinite(*out) &&
           strspn(digits, "+-.0123456789eE") == num;
}

ms_status ms_port_take_number(ms_port *port, const char *key, double low, double high,
                              double *out)
{
    const ms_port_setting *setting = ms_port_find(port, key);
    if (setting == NULL)
        return MS_OK;
    MS_TRY(check_settled(port, setting));
    double value;
    if (setting->value == NULL)
        return ms_port_fail(port, setting, "a number must follow");
    if (!read_number(setting->value, &value))
        return ms_port_fail(port, setting, "\"%s\" is no number", setting->value);
    if (value < low || value > high)
        return ms_port_fail(port, setting, "%s is not from %g to %g", setting->value, low,
                            high);
    *out = value;
    return MS_OK;
}

ms_status ms_port_take_whole(ms_port *port, const char *key, long low, long high,
                             long *out)
{
    double value = (double)*out;
    MS_TRY(ms_port_take_number(port, key, (double)low, (double)high, &value));
    if (value != floor(value)) {
        const ms_port_setting *setting = ms_port_find(port, key);
        return ms_port_fail(port, setting, "%s is no whole number", setting->value);
    }
    *out = (long)value;
    return MS_OK;
}

static ms_status fail_word(ms_port *port, const ms_port_setting *setting,
                           const ms_port_word *words)
{
    const char *list = "";
    for (; words->text != NULL; words++)
        list = ms_arena_printf(port->cx->arena, "%s%s%s", list,
                               list[0] == '\0' ? "" : ", ", words->text);
    ms_port_fail(port, setting, "\"%s\" is no value that a plan can have",
                 setting->value == NULL ? "" : setting->value);
    return ms_hint(port->cx, "one of %s", list);
}

ms_status ms_port_take_word(ms_port *port, const char *key, const ms_port_word *words,
                            long *out)
{
    const ms_port_setting *setting = ms_port_find(port, key);
    if (setting == NULL)
        return MS_OK;
    MS_TRY(check_settled(port, setting));
    for (const ms_port_word *word = words; word->text != NULL; word++) {
        if (setting->value != NULL && strcasecmp(word->text, setting->value) == 0) {
            *out = word->value;
            return MS_OK;
        }
    }
    return fail_word(port, setting, words);
}

ms_status ms_port_take_length(ms_port *port)
{
    if (port->sequence_length > 0)
        port->plan->sequence_length = port->sequence_length;
    else
        ms_port_assume(port, "sequence length %ld: the file has none",
                       port->plan->sequence_length);
    return MS_OK;
}
