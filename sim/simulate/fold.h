/* Folding: ranks that behave alike are simulated once. Colour refinement (Weisfeiler
 * and Leman 1968): each rank starts with a colour of its own properties (pipeline
 * rank, speed). Ranks are then distinguished by the colours of their neighbours in
 * each group, until no class splits. */
#ifndef MS_SIM_SIMULATE_FOLD_H
#define MS_SIM_SIMULATE_FOLD_H

#include "base/arena.h"

#include <stdbool.h>

/* All communication groups of one kind: every rank is in exactly one of them. */
typedef struct ms_fold_axis {
    long num_groups;
    long size;         /* number of ranks in one group */
    const long *ranks; /* (num_groups, size): the ranks of each group */
    /* a rank's position in the group matters too (pipelines, rings of unequal links) */
    bool ordered;
} ms_fold_axis;

typedef struct ms_fold {
    long num_ranks;
    int num_classes;
    const int *class_of; /* (num_ranks): class of each rank */
    /* (num_classes): the smallest rank of the class, which is simulated */
    const long *member;
    const long *multiplicity; /* (num_classes): number of ranks in the class */
} ms_fold;

/* Partitions ranks into the fewest classes such that ranks of one class have equal
 * `colour` (num_ranks entries) and see equal classes in each of their groups. Classes are
 * numbered in the order of their smallest ranks. The result lives in the arena. */
ms_fold ms_fold_make(ms_arena *arena, long num_ranks, const int *colour,
                     const ms_fold_axis *axes, int num_axes);
/* The partition in which every rank is a class of its own. */
ms_fold ms_fold_none(ms_arena *arena, long num_ranks);

#endif
