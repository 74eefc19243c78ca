/* Fuzzes the import of Accelerate's configurations in YAML. */
#include "tests/support/port_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    port_fuzz_import("accelerate", data, size);
    return 0;
}
