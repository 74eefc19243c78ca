/* Numbers in 8 or 4 bits for messages (ZeRO++, Wang et al. 2023, arXiv 2306.10209, section
 * 3.1): blocks of MS_QUANTISED_BLOCK share an fp32 scale, which is their largest magnitude
 * over the largest code; codes are whole numbers from -127 to 127, or from -7 to 7. Host
 * memory alone. */
#ifndef MS_EXEC_PARAMS_QUANTIZED_H
#define MS_EXEC_PARAMS_QUANTIZED_H

#include "costmodel/plan/stack_choices.h"

/* Bytes of `count` numbers: 4 for each begun block, and their codes, rounded up. */
long ms_quantized_bytes(ms_quantized_bits bits, long count);
/* Write and read numbers from the beginning of a block on. Codes are nearest to number /
 * scale. */
void ms_quantized_write(ms_quantized_bits bits, const double *values, long count,
                        unsigned char *to);
void ms_quantized_read(ms_quantized_bits bits, const unsigned char *from, long count,
                       double *values);

#endif
