/* Parts of reading Slurm's topologies: switches and blocks, as two files state them. */
#ifndef MS_TOPO_SITE_SLURM_PRIV_H
#define MS_TOPO_SITE_SLURM_PRIV_H

#include "base/map.h"
#include "topo/site_priv.h"

/* A switch or a block. */
typedef struct ms_slurm_part {
    const char *nodes, *nodes_end;       /* list of hosts; NULL: none */
    const char *children, *children_end; /* list of switches; NULL: none */
    const char *start;                   /* a text of the part, for columns */
    int line, column;                    /* where `start` stands */
    bool has_parent;
    long num_nodes; /* in it and below it; 0: not counted yet */
    int tier;       /* 1: joins nodes; 0: not known yet, -1: being found */
} ms_slurm_part;

typedef struct ms_slurm_reader {
    ms_site_reader *out;
    ms_map names; /* names of `parts` */
    ms_map nodes; /* names of the nodes of switches of tier 1, or of blocks */
    ms_slurm_part *parts;
    int capacity;
    bool has_switches, has_blocks;
} ms_slurm_reader;

/* Adds a part by its name; `at` is where the name stands. MS_EINPUT: it stands twice. */
ms_status ms_slurm_add_part(ms_slurm_reader *r, ms_slurm_part part, const char *name,
                            size_t name_length, ms_loc at);

/* Whether a text is a topology.yaml and not a topology.conf, whose lines begin with a
 * letter or '#'. */
bool ms_slurm_is_yaml(const char *text, size_t length);

/* Adds the parts of a topology.yaml (man 5 topology.yaml): of the topology that is the
 * cluster's default, or of the only one. MS_EINPUT at line and column: syntax (libyaml,
 * YAML 1.1), more than 8 MiB, keys that are unknown, a topology that is neither a tree nor blocks. */
ms_status ms_slurm_read_yaml(ms_slurm_reader *r, const char *text, size_t length);

#endif
