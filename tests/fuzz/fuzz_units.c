/* Fuzzes quantities with units ("80 GB"): an accepted quantity is finite and not
 * negative, and once written it reads back within rounding. */
#include "base/units.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    for (int unit = MS_UNIT_BYTES; unit <= MS_UNIT_COUNT; unit++) {
        double value, again;
        char buf[512];
        if (!ms_parse_quantity(text, (ms_unit)unit, &value))
            continue;
        if (!isfinite(value) || value < 0.0)
            abort();
        ms_format_quantity(buf, sizeof buf, value, (ms_unit)unit);
        bool plain = value == 0.0 || (value > 1e3 && value < 1e18);
        if (plain && (!ms_parse_quantity(buf, (ms_unit)unit, &again) ||
                      fabs(again - value) > 0.006 * value))
            abort();
    }
    free(text);
    return 0;
}
