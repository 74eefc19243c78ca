/* Writes JSON values as they come, without a tree, so that results may have any size. */
#include "base/json_priv.h"
#include "base/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* 2^53: whole numbers up to it are exact in a double */
#define EXACT_INTEGERS 9007199254740992.0

const char *ms_json_number_text(double value, char buf[32])
{
    if (value == floor(value) && fabs(value) <= EXACT_INTEGERS) {
        snprintf(buf, 32, "%.0f", value == 0.0 ? 0.0 : value); /* -0 is written as 0 */
        return buf;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, 32, "%.*g", digits, value);
        if (strtod(buf, NULL) == value)
            break;
    }
    ms_use_decimal_dot(buf);
    return buf;
}

ms_jout ms_jout_open(FILE *file)
{
    return (ms_jout){.file = file};
}

void ms_jout_close(ms_jout *out)
{
    assert(out->depth == 0 && !out->after_key);
    fputc('\n', out->file);
}

static void new_line(const ms_jout *out)
{
    fputc('\n', out->file);
    for (int i = 0; i < out->depth; i++)
        fputs("  ", out->file);
}

static bool is_on_one_line(const ms_jout *out)
{
    return out->line_depth != 0 && out->depth > out->line_depth;
}

static void before_value(ms_jout *out)
{
    if (out->after_key) {
        out->after_key = false;
        return;
    }
    if (out->need_comma)
        fputs(is_on_one_line(out) ? ", " : ",", out->file);
    if (out->depth > 0 && !is_on_one_line(out))
        new_line(out);
}

static void begin(ms_jout *out, char open)
{
    before_value(out);
    fputc(open, out->file);
    out->depth++;
    out->need_comma = false;
}

static void end(ms_jout *out, char close)
{
    assert(out->depth > 0 && !out->after_key);
    /* true: the container has members, each on a line of its own */
    bool ends_line = out->need_comma && !is_on_one_line(out);
    out->depth--;
    if (ends_line)
        new_line(out);
    fputc(close, out->file);
    out->need_comma = true;
}

void ms_jout_begin_object(ms_jout *out)
{
    begin(out, '{');
}

void ms_jout_end_object(ms_jout *out)
{
    end(out, '}');
}

void ms_jout_begin_array(ms_jout *out)
{
    begin(out, '[');
}

void ms_jout_end_array(ms_jout *out)
{
    end(out, ']');
}

static void put_escaped(unsigned char byte, FILE *file)
{
    static const char special[] = "\b\f\n\r\t\"\\";
    static const char letters[] = "bfnrt\"\\";
    const char *found = byte == 0 ? NULL : strchr(special, byte);
    if (found != NULL)
        fprintf(file, "\\%c", letters[found - special]);
    else if (byte < 0x20 || byte == 0x7F)
        fprintf(file, "\\u%04x", (unsigned)byte);
    else
        fputc(byte, file);
}

static void put_string(const char *text, FILE *file)
{
    size_t length = strlen(text);
    fputc('"', file);
    while (length > 0) {
        size_t step = ms_utf8_step(text, length);
        if (step == 1)
            put_escaped((unsigned char)*text, file);
        else if (step > 1 && ms_utf8_is_control(text, step))
            fprintf(file, "\\u%04x", (unsigned)(unsigned char)text[1]);
        else if (step > 1)
            fwrite(text, 1, step, file);
        else
            fputs("\\ufffd", file);
        step = step == 0 ? 1 : step;
        text += step;
        length -= step;
    }
    fputc('"', file);
}

void ms_jout_key(ms_jout *out, const char *key)
{
    assert(out->depth > 0 && !out->after_key);
    before_value(out);
    put_string(key, out->file);
    fputs(": ", out->file);
    out->after_key = true;
    out->need_comma = true;
}

static void put_word(ms_jout *out, const char *word)
{
    before_value(out);
    fputs(word, out->file);
    out->need_comma = true;
}

void ms_jout_text(ms_jout *out, const char *text)
{
    if (text == NULL) {
        put_word(out, "null");
        return;
    }
    before_value(out);
    put_string(text, out->file);
    out->need_comma = true;
}

void ms_jout_number(ms_jout *out, double value)
{
    char buf[32];
    put_word(out, isfinite(value) ? ms_json_number_text(value, buf) : "null");
}

void ms_jout_bool(ms_jout *out, bool value)
{
    put_word(out, value ? "true" : "false");
}

void ms_jout_null(ms_jout *out)
{
    put_word(out, "null");
}

void ms_jout_integers(ms_jout *out, const long *values, long num_values)
{
    before_value(out);
    fputc('[', out->file);
    for (long i = 0; i < num_values; i++)
        fprintf(out->file, "%s%ld", i == 0 ? "" : ", ", values[i]);
    fputc(']', out->file);
    out->need_comma = true;
}

void ms_jout_text_field(ms_jout *out, const char *key, const char *text)
{
    ms_jout_key(out, key);
    ms_jout_text(out, text);
}

void ms_jout_number_field(ms_jout *out, const char *key, double value)
{
    ms_jout_key(out, key);
    ms_jout_number(out, value);
}

void ms_jout_bool_field(ms_jout *out, const char *key, bool value)
{
    ms_jout_key(out, key);
    ms_jout_bool(out, value);
}

void ms_jout_begin_object_field(ms_jout *out, const char *key)
{
    ms_jout_key(out, key);
    ms_jout_begin_object(out);
}

void ms_jout_begin_array_field(ms_jout *out, const char *key)
{
    ms_jout_key(out, key);
    ms_jout_begin_array(out);
}

void ms_jout_numbers_field(ms_jout *out, const char *key, const double *values, long num)
{
    ms_jout_begin_array_field(out, key);
    for (long i = 0; i < num; i++)
        ms_jout_number(out, values[i]);
    ms_jout_end_array(out);
}
