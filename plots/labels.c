#include "plots/labels.h"

#include <math.h>

static bool covers(const ms_label_place *a, const ms_label_place *b, ms_label_size size)
{
    return fabs(a->x - b->x) <= size.width && fabs(a->y - b->y) <= size.height;
}

void ms_labels_choose(const ms_label_place *places, int num, ms_label_size size,
                      bool *out)
{
    for (int i = 0; i < num; i++) {
        out[i] = !isnan(places[i].x) && !isnan(places[i].y);
        for (int k = 0; k < i && out[i]; k++)
            out[i] = !out[k] || !covers(&places[k], &places[i], size);
    }
}
