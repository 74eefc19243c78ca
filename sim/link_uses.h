/* What the collectives of a plan put on the links of its cluster, folded: links that all
 * collectives load alike are one class, and a collective of a meeting stands for those of
 * all its groups at once. */
#ifndef MS_SIM_LINK_USES_H
#define MS_SIM_LINK_USES_H

#include "costmodel/flows.h"
#include "sim/actors.h"

/* Collectives that differ in their size at most. A send of a pipeline: between two of its
 * ranks. */
typedef struct ms_use_kind {
    ms_traffic_group group;
    ms_collective collective;
    ms_algorithm algorithm;
    double wire_frac; /* as ms_link_load has it */
    bool ring;        /* sends around a closed ring */
    int from, to;     /* MS_TRAFFIC_PP: pipeline ranks */
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
    const double *slow_factor; /* (links) */
    int num_kinds, capacity;
    ms_use_kind *kinds;
    int num_classes;
    const int *link_of_class; /* (classes): its first link */
    /* by kind: (meetings + 1) into uses; the meetings of a send are its senders */
    int **first;
    const ms_class_use **uses;
} ms_link_uses;

/* Everything lives in the arena. slow_factor (links of the fabric): 1 where nothing is
 * slow. */
ms_link_uses *ms_link_uses_open(ms_arena *arena, const ms_plan *plan,
                                const ms_fabric *fabric, const double *slow_factor);
/* The number of a kind, which is added when it is new. */
int ms_link_uses_kind(ms_link_uses *u, ms_use_kind kind);
/* Colours (ranks) that tell apart whose groups load links differently. */
int *ms_link_uses_colours(ms_link_uses *u);
/* When all kinds are there: classes of links, and the uses of every meeting. */
void ms_link_uses_fold(ms_link_uses *u, const ms_actors *actors);

#endif
