/* The fuzz targets of imports: one check for every format. */
#ifndef MS_TESTS_SUPPORT_PORT_FUZZ_H
#define MS_TESTS_SUPPORT_PORT_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Imports `size` bytes of a format's text, with 64 GPUs or as many as it states. Aborts
 * unless every refusal has a message and an accepted plan has as many ranks as its mesh. */
void port_fuzz_import(const char *format_name, const uint8_t *data, size_t size);

#endif
