/* Ranks that behave alike are simulated once. Colour refinement (Weisfeiler and Leman
 * 1968): ranks start with a colour of what they are (pipeline stage, own speed), and are
 * told apart by the colours of their neighbours in each group until nothing changes. */
#ifndef MS_SIM_FOLD_H
#define MS_SIM_FOLD_H

#include "base/arena.h"

#include <stdbool.h>

/* One kind of group: every rank is in exactly one. */
typedef struct ms_fold_axis {
    long num_groups;
    long size;         /* ranks of a group */
    const long *ranks; /* (num_groups, size) */
    /* the position in the group matters (pipelines, rings whose links differ), not only
     * who is in it */
    bool ordered;
} ms_fold_axis;

typedef struct ms_fold {
    long num_ranks;
    int num_classes;
    const int *class_of;      /* (num_ranks) */
    const long *member;       /* (num_classes): its smallest rank, which is simulated */
    const long *multiplicity; /* (num_classes): how many ranks it stands for */
} ms_fold;

/* `colour` (num_ranks): what ranks are by themselves. The coarsest partition in which
 * ranks of one class see equal classes in each of their groups. Classes are numbered by
 * their smallest rank. Lives in the arena. */
ms_fold ms_fold_make(ms_arena *arena, long num_ranks, const int *colour,
                     const ms_fold_axis *axes, int num_axes);
/* Every rank its own class. */
ms_fold ms_fold_none(ms_arena *arena, long num_ranks);

#endif
