/* Fuzzes the import of Megatron-LM's launch scripts. */
#include "tests/support/port_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    port_fuzz_import("megatron", data, size);
    return 0;
}
