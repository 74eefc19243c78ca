/* Fuzzes the import of DeepSpeed's configurations in JSON. */
#include "tests/support/port_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    port_fuzz_import("deepspeed", data, size);
    return 0;
}
