/* Quantities with units, as people write them: "450 GB/s", "80 GiB", "4 us", "989
 * TFLOP/s", "8k". GB is 1e9 bytes, GiB is 2^30 bytes, Gb is 1e9 bits (so "400 Gb/s" is
 * 50e9 bytes per second). */
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
    MS_UNIT_COUNT
} ms_unit;

/* Parses the whole of `text`; false if it is no non-negative finite quantity of that
 * unit. MS_UNIT_COUNT: "8k" = 8192 (sequence lengths and batches are powers of two),
 * "4Mi" = 4194304, "1000" = 1000. Every other unit must be written out. */
bool ms_parse_quantity(const char *text, ms_unit unit, double *out);

/* An example of a valid spelling, for messages: "80 GiB". */
const char *ms_unit_example(ms_unit unit);

/* Writes a quantity into buf with about 3 significant digits: 1.23 ms, 80.0 GiB, 450
 * GB/s, 989 TFLOP/s; "n/a" for NaN. Returns buf. */
char *ms_format_quantity(char *buf, size_t size, double value, ms_unit unit);

#endif
