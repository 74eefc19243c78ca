/* Weights in NF4 with double quantization (QLoRA, Dettmers et al. 2023, arXiv 2305.14314,
 * sections 3 and appendix E). Blocks of MS_NF4_BLOCK consecutive values share a scale,
 * their largest magnitude; scales of a group of MS_NF4_SCALES blocks have 8 bits each
 * (unsigned codes of exec/params/optimizer.h, since scales are not negative; the paper
 * subtracts their mean and keeps a sign) and share one in fp32. Host memory alone. */
#ifndef MS_EXEC_PARAMS_NF4_H
#define MS_EXEC_PARAMS_NF4_H

#define MS_NF4_BLOCK  64
#define MS_NF4_SCALES 256
#define MS_NF4_GROUP  (MS_NF4_BLOCK * MS_NF4_SCALES)

/* The numbers that a code 0 ... 15 stands for, in ascending order, in units of the scale:
 * quantiles of the normal distribution (appendix E of the paper). */
extern const double ms_nf4_numbers[16];

/* Bytes of `count` values: 4 for each begun group, 1 for each begun block, half a byte for
 * each value, rounded up. */
long ms_nf4_bytes(long count);
/* Writes and reads values from the beginning of a group on. Each value gets the code whose
 * number is nearest to value / scale, the lower one of two as near. */
void ms_nf4_write(const double *values, long count, unsigned char *to);
void ms_nf4_read(const unsigned char *from, long count, double *values);

#endif
