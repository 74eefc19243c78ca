/* Labels beside points of a picture that do not cover each other. */
#ifndef MS_PLOTS_LABELS_H
#define MS_PLOTS_LABELS_H

#include "base/arena.h"

#include <stdbool.h>

typedef struct ms_label_place {
    double x, y; /* pixels; NaN: no label is wanted there */
} ms_label_place;

typedef struct ms_label_size {
    double width, height; /* pixels */
} ms_label_size;

/* Marks those of `num` places whose labels have room, in the given order: the first takes
 * its room before the others. out: (num). */
void ms_labels_choose(const ms_label_place *places, int num, ms_label_size size,
                      bool *out);

#endif
