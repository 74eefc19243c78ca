/* Each unit has a table of spellings for reading and one of prefixes for writing. Numbers
 * are as in JSON without a sign, whatever the locale. */
#include "base/units.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KI        1024.0
#define MI        (1024.0 * KI)
#define GI        (1024.0 * MI)
#define TI        (1024.0 * GI)
#define PI_PREFIX (1024.0 * TI)

typedef struct spelling {
    const char *text;
    double scale;
} spelling;

/* Units of bytes and their size in bytes (a lower-case b is a bit); "/s" makes a rate. */
static const spelling byte_spellings[] = {
    {"B", 1.0},      {"kB", 1e3},        {"KB", 1e3},     {"MB", 1e6},    {"GB", 1e9},
    {"TB", 1e12},    {"PB", 1e15},       {"KiB", KI},     {"MiB", MI},    {"GiB", GI},
    {"TiB", TI},     {"PiB", PI_PREFIX}, {"b", 0.125},    {"kb", 125.0},  {"Kb", 125.0},
    {"Mb", 125e3},   {"Gb", 125e6},      {"Tb", 125e9},   {"bit", 0.125}, {"kbit", 125.0},
    {"Mbit", 125e3}, {"Gbit", 125e6},    {"Tbit", 125e9}, {NULL, 0.0},
};

static const spelling bit_rate_spellings[] = {
    {"bps", 0.125},  {"kbps", 125.0}, {"Kbps", 125.0}, {"Mbps", 125e3},
    {"Gbps", 125e6}, {"Tbps", 125e9}, {NULL, 0.0},
};

/* The micro sign (U+00B5) and the Greek mu (U+03BC) look alike; people type either. */
static const spelling second_spellings[] = {
    {"s", 1.0},          {"ms", 1e-3},   {"us", 1e-6},  {"\xC2\xB5s", 1e-6},
    {"\xCE\xBCs", 1e-6}, {"ns", 1e-9},   {"ps", 1e-12}, {"min", 60.0},
    {"h", 3600.0},       {"d", 86400.0}, {NULL, 0.0},
};

static const spelling flop_rate_spellings[] = {
    {"FLOP/s", 1.0},   {"kFLOP/s", 1e3},  {"MFLOP/s", 1e6},  {"GFLOP/s", 1e9},
    {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}, {"EFLOP/s", 1e18}, {"FLOPS", 1.0},
    {"kFLOPS", 1e3},   {"MFLOPS", 1e6},   {"GFLOPS", 1e9},   {"TFLOPS", 1e12},
    {"PFLOPS", 1e15},  {"EFLOPS", 1e18},  {NULL, 0.0},
};

/* Suffixes of counts are powers of 1024. There is no "m": it could mean a thousandth. */
static const spelling count_spellings[] = {
    {"", 1.0},  {"k", KI}, {"K", KI},  {"Ki", KI},  {"M", MI},
    {"Mi", MI}, {"G", GI}, {"Gi", GI}, {NULL, 0.0},
};

static const spelling decimal_spellings[] = {
    {"", 1.0},  {"k", 1e3}, {"K", 1e3},  {"M", 1e6},
    {"B", 1e9}, {"G", 1e9}, {"T", 1e12}, {NULL, 0.0},
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *p)
{
    while (is_digit(*p))
        p++;
    return p;
}

/* End of the number at the start of `text`; NULL if none. An 'e' needs digits after it,
 * so that "5EFLOP/s" is a quantity. */
static const char *number_end(const char *text)
{
    if (!is_digit(*text))
        return NULL;
    const char *p = skip_digits(text);
    if (*p == '.') {
        if (!is_digit(p[1]))
            return NULL;
        p = skip_digits(p + 1);
    }
    if (*p == 'e' || *p == 'E') {
        const char *digits = p + 1 + (p[1] == '+' || p[1] == '-');
        if (is_digit(*digits))
            p = skip_digits(digits);
    }
    return p;
}

/* Reads a number with the locale's decimal point; false if a double cannot hold it. */
static bool read_number(const char *text, size_t length, double *out)
{
    char buffer[128];
    const char *point = localeconv()->decimal_point;
    size_t num_point = strlen(point), used = 0;
    for (size_t i = 0; i < length; i++) {
        if (used + num_point + 1 >= sizeof buffer)
            return false;
        if (text[i] == '.') {
            memcpy(buffer + used, point, num_point);
            used += num_point;
        } else {
            buffer[used++] = text[i];
        }
    }
    buffer[used] = '\0';
    char *end;
    *out = strtod(buffer, &end);
    bool underflows = *out == 0.0 && strcspn(buffer, "123456789") < strcspn(buffer, "eE");
    return *end == '\0' && isfinite(*out) && !underflows;
}

static double scale_of(const spelling *table, const char *text, size_t length)
{
    for (; table->text != NULL; table++)
        if (strlen(table->text) == length && strncmp(table->text, text, length) == 0)
            return table->scale;
    return 0.0;
}

/* The factor of a unit spelling; 0 if `text` is no spelling of the unit. */
static double unit_scale(const char *text, ms_unit unit)
{
    static const spelling *const spellings[] = {
        [MS_UNIT_BYTES] = byte_spellings,     [MS_UNIT_BYTES_PER_S] = bit_rate_spellings,
        [MS_UNIT_SECONDS] = second_spellings, [MS_UNIT_FLOP_PER_S] = flop_rate_spellings,
        [MS_UNIT_COUNT] = count_spellings,    [MS_UNIT_DECIMAL] = decimal_spellings,
    };
    size_t length = strlen(text);
    if (unit == MS_UNIT_BYTES_PER_S && length > 2 && strcmp(text + length - 2, "/s") == 0)
        return scale_of(byte_spellings, text, length - 2);
    return scale_of(spellings[unit], text, length);
}

bool ms_parse_quantity(const char *text, ms_unit unit, double *out)
{
    const char *end = number_end(text);
    double number;
    if (end == NULL || !read_number(text, (size_t)(end - text), &number))
        return false;
    const char *suffix = end + strspn(end, " ");
    if (*suffix == '\0' && suffix != end)
        return false; /* refuse a blank after a number without a unit */
    double scale = unit_scale(suffix, unit);
    /* dividing by a power of ten is exact: "4 us" is exactly 4e-6 */
    double value =
        scale < 1.0 && scale > 0.0 ? number / round(1.0 / scale) : number * scale;
    if (scale == 0.0 || !isfinite(value))
        return false;
    *out = value;
    return true;
}

bool ms_parse_percentage(const char *text, double *frac)
{
    const char *end = number_end(text);
    double percent;
    if (end == NULL || !read_number(text, (size_t)(end - text), &percent) ||
        (strcmp(end, "%") != 0 && (end[0] != '\0' || percent != 0.0)) || percent < 0.0 ||
        percent >= 100.0)
        return false;
    *frac = percent / 100.0;
    return true;
}

const char *ms_unit_example(ms_unit unit)
{
    static const char *const examples[] = {
        [MS_UNIT_BYTES] = "80 GiB", [MS_UNIT_BYTES_PER_S] = "450 GB/s",
        [MS_UNIT_SECONDS] = "4 us", [MS_UNIT_FLOP_PER_S] = "989 TFLOP/s",
        [MS_UNIT_COUNT] = "8192",   [MS_UNIT_DECIMAL] = "15T",
    };
    return examples[unit];
}

/* ---- writing ---- */

/* One prefix of a unit: used while the rounded number is below `limit`. */
typedef struct prefix {
    double scale;
    double limit;
    const char *text;
} prefix;

static const prefix byte_prefixes[] = {
    {1.0, 1023.5, "B"},  {KI, 1023.5, "KiB"}, {MI, 1023.5, "MiB"},
    {GI, 1023.5, "GiB"}, {TI, 1023.5, "TiB"}, {PI_PREFIX, INFINITY, "PiB"},
};
static const prefix byte_rate_prefixes[] = {
    {1.0, 999.5, "B/s"},  {1e3, 999.5, "kB/s"},  {1e6, 999.5, "MB/s"},
    {1e9, 999.5, "GB/s"}, {1e12, 999.5, "TB/s"}, {1e15, INFINITY, "PB/s"},
};
static const prefix second_prefixes[] = {
    {1e-9, 999.5, "ns"},      {1e-6, 999.5, "us"},  {1e-3, 999.5, "ms"},
    {1.0, 599.5, "s"},        {60.0, 119.5, "min"}, {3600.0, 47.95, "h"},
    {86400.0, INFINITY, "d"},
};
static const prefix flop_rate_prefixes[] = {
    {1.0, 999.5, "FLOP/s"},      {1e3, 999.5, "kFLOP/s"},  {1e6, 999.5, "MFLOP/s"},
    {1e9, 999.5, "GFLOP/s"},     {1e12, 999.5, "TFLOP/s"}, {1e15, 999.5, "PFLOP/s"},
    {1e18, INFINITY, "EFLOP/s"},
};

/* The prefix with which a quantity is written; each unit's last prefix has no limit. */
static const prefix *prefix_of(double magnitude, ms_unit unit)
{
    static const prefix *const prefixes[] = {
        [MS_UNIT_BYTES] = byte_prefixes,
        [MS_UNIT_BYTES_PER_S] = byte_rate_prefixes,
        [MS_UNIT_SECONDS] = second_prefixes,
        [MS_UNIT_FLOP_PER_S] = flop_rate_prefixes,
    };
    if (unit == MS_UNIT_SECONDS && magnitude == 0.0)
        return &second_prefixes[3];
    const prefix *p = prefixes[unit];
    while (magnitude / p->scale >= p->limit)
        p++;
    return p;
}

void ms_use_decimal_dot(char *text)
{
    const char *point = localeconv()->decimal_point;
    char *found = point[0] == '.' ? NULL : strstr(text, point);
    if (found == NULL)
        return;
    *found = '.';
    size_t surplus = strlen(point) - 1;
    memmove(found + 1, found + 1 + surplus, strlen(found + 1 + surplus) + 1);
}

/* Prints a value to three significant digits, with a prefix; whole bytes: no fraction. */
static void print_scaled(char *buf, size_t size, double value, const prefix *p)
{
    double scaled = value / p->scale;
    double magnitude = fabs(scaled);
    int digits = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;
    if (scaled == 0.0 || strcmp(p->text, "B") == 0)
        digits = 0;
    snprintf(buf, size, "%.*f %s", digits, scaled, p->text);
    ms_use_decimal_dot(buf);
}

static void print_count(char *buf, size_t size, double value)
{
    if (value == floor(value) && fabs(value) < 1e15)
        snprintf(buf, size, "%.0f", value);
    else
        snprintf(buf, size, "%.4g", value);
    ms_use_decimal_dot(buf);
}

char *ms_format_quantity(char *buf, size_t size, double value, ms_unit unit)
{
    assert(size > 0);
    if (!isfinite(value)) {
        snprintf(buf, size, "%s", isnan(value) ? "n/a" : value > 0 ? "inf" : "-inf");
        return buf;
    }
    if (unit == MS_UNIT_COUNT || unit == MS_UNIT_DECIMAL)
        print_count(buf, size, value);
    else
        print_scaled(buf, size, value, prefix_of(fabs(value), unit));
    return buf;
}
