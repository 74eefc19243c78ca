/* Lists of hosts as Slurm writes them: "gpu[001-020,025],login1". */
#ifndef MS_TOPO_SITE_HOSTLIST_H
#define MS_TOPO_SITE_HOSTLIST_H

#include "base/arena.h"

#include <stdbool.h>

#define MS_MAX_HOST_GROUPS 4        /* most brackets of a name */
#define MS_MAX_HOST_NAMES  1000000L /* most names of an item */

/* A bracket of a name. */
typedef struct ms_host_group {
    const char *text, *end; /* the bracket, with both its marks */
    long num;               /* numbers in it */
    /* the range that was read last, and how many numbers stand before it */
    const char *range;
    long before;
} ms_host_group;

/* Names that differ by the numbers in their brackets; one name if there are none. */
typedef struct ms_host_item {
    const char *text, *end;
    int num_groups;
    ms_host_group groups[MS_MAX_HOST_GROUPS];
    long num; /* names */
} ms_host_item;

/* Reads the next item of a list from *at to `end` and moves *at behind it and its comma.
 * False at the end of the list, with *fault NULL; or with a fault: a bracket or range that
 * is malformed, an empty name, or more than MS_MAX_HOST_NAMES names. */
bool ms_host_item_next(const char **at, const char *end, ms_host_item *out,
                       const char **fault);
/* The index-th name of an item, 0 <= index < num. Ascending indices take time in proportion
 * to their number. */
const char *ms_host_item_name(ms_arena *arena, ms_host_item *item, long index);

#endif
