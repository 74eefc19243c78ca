/* Load of a plan's collectives on the links of its cluster, folded like the ranks: links
 * with equal loads from every collective are one class, and the load of a collective
 * among simulated ranks includes all groups of ranks for which they stand. */
#ifndef MS_SIM_SIMULATE_LINK_USES_H
#define MS_SIM_SIMULATE_LINK_USES_H

#include "costmodel/cost/flows.h"
#include "sim/simulate/actors.h"

/* Collectives equal but for their size, or all sends between two given pipeline ranks. */
typedef struct ms_use_kind {
    ms_traffic_group group;
    ms_collective collective;
    ms_algorithm algorithm;
    double wire_frac; /* share of all-to-all bytes sent between domains */
    bool ring; /* each rank of the group sends to the next, and the last to the first */
    int from, to; /* MS_TRAFFIC_PP: sending and receiving pipeline rank */
} ms_use_kind;

/* Use of the links of one class by a collective: bytes on a link per byte of its size. */
typedef struct ms_class_use {
    int link_class;
    double bytes_frac;
} ms_class_use;

typedef struct ms_link_uses {
    ms_arena *arena;
    const ms_fabric *fabric;
    ms_plan_groups groups;
    ms_fold_axis axis[MS_NUM_TRAFFIC_GROUPS];
    /* (num_links): factor on the transfer time of each link; 1: normal speed */
    const double *slow_factor;
    int num_kinds, capacity;
    ms_use_kind *kinds;
    int num_classes;
    const int *link_of_class; /* (num_classes): the first link of each class */
    /* first[kind][meeting], (meetings + 1) per kind: index in uses[kind] of the meeting's
     * first use. A meeting is a set of simulated ranks that communicate, or a sender. */
    int **first;
    const ms_class_use **uses;
} ms_link_uses;

/* Starts a collection of link uses, which lives in the arena. slow_factor (links of the
 * fabric): factor on the transfer time of each link; 1: normal speed. */
ms_link_uses *ms_link_uses_open(ms_arena *arena, const ms_plan *plan,
                                const ms_fabric *fabric, const double *slow_factor);
/* Index of a kind of collective; a new kind is added. */
int ms_link_uses_kind(ms_link_uses *u, ms_use_kind kind);
/* Colours (num_ranks) for folding: unequal if the ranks' groups load links unequally. */
int *ms_link_uses_colours(ms_link_uses *u);
/* Finds the classes of equally loaded links, and the link uses of all `actors`. To be
 * called when all kinds have been added. */
void ms_link_uses_fold(ms_link_uses *u, const ms_actors *actors);

#endif
