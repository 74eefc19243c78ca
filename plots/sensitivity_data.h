/* Tornado of a what-if study: how the step, or with a campaign its days or money, change
 * when each number is lower and higher. */
#ifndef MS_PLOTS_SENSITIVITY_DATA_H
#define MS_PLOTS_SENSITIVITY_DATA_H

#include "plots/script.h"
#include "sim/planning/what_if.h"

#define MS_MAX_TORNADO_ROWS 16

typedef struct ms_tornado {
    ms_arena *arena; /* arena for captions */
    const ms_what_if *study;
} ms_tornado;

/* Number of rows: the numbers of largest effect, at most MS_MAX_TORNADO_ROWS. */
int ms_tornado_num_rows(const ms_tornado *plot);

void ms_tornado_write_data(FILE *out, const ms_tornado *plot);
ms_status ms_tornado_write_script(ms_ctx *cx, FILE *out, const ms_tornado *plot,
                                  const char *name, ms_picture_format format);
void ms_tornado_write_json(ms_jout *out, const ms_tornado *plot);
void ms_tornado_print(FILE *out, const ms_tornado *plot);

#endif
