/* Quantities with units: "450 GB/s", "80 GiB", "4 us", "989 TFLOP/s", "8k". GB is 1e9
 * bytes, GiB 2^30 bytes, Gb 1e9 bits. */
#ifndef MS_BASE_UNITS_H
#define MS_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum ms_unit {
    MS_UNIT_BYTES,
    MS_UNIT_BYTES_PER_S,
    MS_UNIT_SECONDS,
    MS_UNIT_FLOP_PER_S,
    /* plain number; suffixes k, M, G and Ki, Mi, Gi are powers of 1024 */
    MS_UNIT_COUNT,
    /* plain number; suffixes k, M, B or G, and T are powers of 1000 */
    MS_UNIT_DECIMAL
} ms_unit;

/* Parses all of `text`; false if it is no non-negative finite quantity of the unit.
 * Only plain numbers may lack a unit: as a count "8k" is 8192, as a decimal 8000. */
bool ms_parse_quantity(const char *text, ms_unit unit, double *out);

/* Parses "8%" as 0.08, and "0"; false if `text` is no percentage from 0 to below 100. */
bool ms_parse_percentage(const char *text, double *frac);

/* Replaces the decimal point of the locale in a number's text by '.'. */
void ms_use_decimal_dot(char *text);

/* An example of a valid spelling, for messages: "80 GiB". */
const char *ms_unit_example(ms_unit unit);

/* Writes about 3 digits into buf, "1.23 ms", "80.0 GiB"; "n/a" for NaN. Returns buf. */
char *ms_format_quantity(char *buf, size_t size, double value, ms_unit unit);

#endif
