/* Lists of hosts as Slurm writes them: "gpu[001-020,025],login1". */
#ifndef MS_TOPO_SITE_HOSTLIST_H
#define MS_TOPO_SITE_HOSTLIST_H

#include "base/arena.h"

#include <stdbool.h>

#define MS_MAX_HOST_GROUPS 4 /* most brackets of a name */

/* Names that differ by the numbers in their brackets; one name if there are none. */
typedef struct ms_host_item {
    const char *text, *end;
    int num_groups;
    const char *groups[MS_MAX_HOST_GROUPS]; /* the opening brackets */
    long counts[MS_MAX_HOST_GROUPS];        /* numbers in each bracket */
    long num;                               /* names */
} ms_host_item;

/* Reads the next item of a list from *at to `end` and moves *at behind it. False at the end
 * of the list, with *fault NULL; or with a fault: a bracket or range that is malformed, or
 * more than 10 million names. */
bool ms_host_item_next(const char **at, const char *end, ms_host_item *out,
                       const char **fault);
/* The index-th name of an item, 0 <= index < num. */
const char *ms_host_item_name(ms_arena *arena, const ms_host_item *item, long index);

#endif
