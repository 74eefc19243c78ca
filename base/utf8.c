/* UTF-8 validation after table 3-7 of the Unicode standard 15.0. */
#include "base/utf8.h"

#include <string.h>

/* Whether the second byte of a UTF-8 character is allowed after the first. */
static int second_byte_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xE0:
        return second >= 0xA0 && second <= 0xBF;
    case 0xED:
        return second >= 0x80 && second <= 0x9F;
    case 0xF0:
        return second >= 0x90 && second <= 0xBF;
    case 0xF4:
        return second >= 0x80 && second <= 0x8F;
    default:
        return second >= 0x80 && second <= 0xBF;
    }
}

static size_t length_by_first(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return 2;
    if (first >= 0xE0 && first <= 0xEF)
        return 3;
    if (first >= 0xF0 && first <= 0xF4)
        return 4;
    return 0;
}

size_t ms_utf8_step(const char *text, size_t length)
{
    if (length == 0)
        return 0;
    unsigned char first = (unsigned char)text[0];
    size_t step = length_by_first(first);
    if (step <= 1)
        return step;
    if (step > length || !second_byte_fits(first, (unsigned char)text[1]))
        return 0;
    for (size_t i = 2; i < step; i++)
        if (((unsigned char)text[i] & 0xC0) != 0x80)
            return 0;
    return step;
}

size_t ms_utf8_width(const char *text)
{
    size_t width = 0;
    size_t length = strlen(text);
    while (length > 0) {
        size_t step = ms_utf8_step(text, length);
        if (step == 0)
            step = 1;
        text += step;
        length -= step;
        width++;
    }
    return width;
}

int ms_utf8_prefix(const char *text, int most)
{
    size_t length = strlen(text), at = 0;
    for (int i = 0; i < most && at < length; i++) {
        size_t step = ms_utf8_step(text + at, length - at);
        at += step == 0 ? 1 : step;
    }
    return (int)at;
}

bool ms_utf8_is_control(const char *text, size_t step)
{
    unsigned char byte = (unsigned char)text[0];
    return byte < 0x20 || byte == 0x7F ||
           (step == 2 && byte == 0xC2 && (unsigned char)text[1] < 0xA0);
}
