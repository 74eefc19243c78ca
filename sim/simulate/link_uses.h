/* Load of a plan's collectives on the links of its cluster, folded: links that all
 * collectives load alike form one class, and a collective of a meeting stands for
 * those of all its groups at once. */
#ifndef MS_SIM_SIMULATE_LINK_USES_H
#define MS_SIM_SIMULATE_LINK_USES_H

#include "costmodel/cost/flows.h"
#include "sim/simulate/actors.h"

/* Collectives that differ at most in their size, or sends between two pipeline ranks. */
typedef struct ms_use_kind {
    ms_traffic_group group;
    ms_collective collective;
    ms_algorithm algorithm;
    double wire_frac; /* ms_link_load.wire_frac */
    bool ring;        /* each rank sends to the next, and the last to the first */
    int from, to;     /* MS_TRAFFIC_PP: sending and receiving pipeline rank */
} ms_use_kind;

/* Bytes on each link of a class, per byte of the collective's size. */
typedef struct ms_class_use {
    int link_class;
    double bytes_frac;
} ms_class_use;

typedef struct ms_link_uses {
    ms_arena *arena;
    const ms_fabric *fabric;
    ms_plan_groups groups;
    ms_fold_axis axis[MS_NUM_TRAFFIC_GROUPS];
    /* (links): transfers over a link take this many times as long; 1: normal speed */
    const double *slow_factor;
    int num_kinds, capacity;
    ms_use_kind *kinds;
    int num_classes;
    const int *link_of_class; /* (classes): the first link of each class */
    /* (kinds), each (meetings + 1): where the uses of a meeting start. A send counts
     * each sender as a meeting. */
    int **first;
    const ms_class_use **uses;
} ms_link_uses;

/* Starts collecting uses; the result lives in the arena. slow_factor (links of the
 * fabric): transfers over a link take this many times as long; 1: normal speed. */
ms_link_uses *ms_link_uses_open(ms_arena *arena, const ms_plan *plan,
                                const ms_fabric *fabric, const double *slow_factor);
/* The number of a kind, which is added if it is new. */
int ms_link_uses_kind(ms_link_uses *u, ms_use_kind kind);
/* Colours (ranks) that distinguish ranks whose groups load links differently. */
int *ms_link_uses_colours(ms_link_uses *u);
/* Finds the classes of links and the uses of every meeting. Called when all kinds have
 * been added. */
void ms_link_uses_fold(ms_link_uses *u, const ms_actors *actors);

#endif
