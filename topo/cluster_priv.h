/* Parts of reading a cluster that cluster.c and cluster_mixed.c share. */
#ifndef MS_TOPO_CLUSTER_PRIV_H
#define MS_TOPO_CLUSTER_PRIV_H

#include "topo/cluster.h"

/* Reads the figures of a level; its place among other levels is not checked. */
ms_status ms_level_read(ms_ctx *cx, ms_jval value, ms_level *level);
/* Reads a mixed cluster; `groups`: its "device_groups". */
ms_status ms_cluster_read_mixed(ms_ctx *cx, ms_jval root, ms_jval groups,
                                ms_cluster *out);
/* Reads the slow nodes of a file, if it states any, into a cluster that is read. */
ms_status ms_cluster_read_slow(ms_ctx *cx, ms_jval root, ms_cluster *cluster);

#endif
