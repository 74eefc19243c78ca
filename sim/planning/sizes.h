/* A range or a list of whole numbers, as people write numbers of GPUs. */
#ifndef MS_SIM_PLANNING_SIZES_H
#define MS_SIM_PLANNING_SIZES_H

#include "base/diag.h"

#define MS_MAX_SIZES 32

typedef struct ms_sizes {
    int num;
    long sizes[MS_MAX_SIZES]; /* numbers of GPUs, ascending */
} ms_sizes;

/* Reads ascending numbers of GPUs: "64..4096" doubles 64 up to 4096, "64,96,128" is a
 * list, "1k" is 1024. MS_EINPUT, naming `option`: other text, numbers outside 1 ..
 * `most`, an end that doubling does not reach, more than MS_MAX_SIZES numbers. */
ms_status ms_sizes_parse(ms_ctx *cx, const char *option, const char *text, long most,
                         ms_sizes *out);

#endif
