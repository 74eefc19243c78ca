/* Fuzzes the import of torchtitan's configurations in TOML. */
#include "tests/support/port_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    port_fuzz_import("torchtitan", data, size);
    return 0;
}
