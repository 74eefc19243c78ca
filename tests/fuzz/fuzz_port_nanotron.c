/* Fuzzes the import of nanotron's configurations in YAML. */
#include "tests/support/port_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    port_fuzz_import("nanotron", data, size);
    return 0;
}
