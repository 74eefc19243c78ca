/* Fuzzes the import of MaxText's configurations in YAML and of its launch scripts. */
#include "tests/support/port_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    port_fuzz_import("maxtext", data, size);
    return 0;
}
