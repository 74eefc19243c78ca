/* Names that tables of measurements use for devices, frameworks, models, networks and
 * words, with their meanings; read from configs/names/. Of every list the first matching
 * row applies. docs/names.md lists them all. */
#ifndef MS_SIM_VALIDATE_NAME_TABLES_H
#define MS_SIM_VALIDATE_NAME_TABLES_H

#include "base/json.h"

/* A device by its name in lower case; a space in `name` matches ' ', '-', '_' or none. */
typedef struct ms_device_name {
    const char *name;
    double gib;          /* device memory, matched within 2 %; 0 matches any */
    const char *word;    /* text needed in GPU type or network; NULL: none needed */
    const char *cluster; /* name in configs/clusters/; NULL if there is none */
    bool mixes; /* beside another device's name in a cell it means a second device */
    ms_list host_gib; /* (double) memory sizes of a Superchip's host */
} ms_device_name;

typedef struct ms_rack_name {
    const char *name;
    long gpus; /* GPUs in one NVLink domain */
} ms_rack_name;

/* A system, or a GPU as drivers name it, whose case-sensitive name contains `name`. */
typedef struct ms_system_name {
    const char *name;
    const char *with;   /* text that the name also contains; NULL: none needed */
    bool several_nodes; /* matches only rows of more than one node */
    /* name in configs/clusters/; NULL if there is none: see `reason` */
    const char *cluster;
    const char *reason;
} ms_system_name;

/* A training framework; a word of the table row's framework cell begins with `name`. */
typedef struct ms_framework_name {
    const char *name;
    /* text needed in the cells of framework, flags or precision; NULL: none needed */
    const char *word;
    /* text in framework, flags, precision, or beginning a source's word; NULL: any */
    const char *work;
    long before;       /* matches rows dated before this month, as 202301; 0: any */
    const char *stack; /* name in configs/stacks/; NULL if unknown */
    long global_batch; /* published global batch, sequences; 0: not known */
} ms_framework_name;

typedef enum ms_model_style {
    MS_STYLE_AS_BASE,
    /* experts in every second layer; 3 of 4 layers attend in chunks of 8192 tokens */
    MS_STYLE_LLAMA4
} ms_model_style;

typedef enum ms_unsupported {
    MS_SUPPORTED,
    MS_UNSUPPORTED_UNKNOWN, /* shapes neither stated by rows nor known here */
    MS_UNSUPPORTED_STATES, /* state-space or linear-attention layers other than Mamba-2 */
    MS_UNSUPPORTED_ENCODER /* encoder in addition to the decoder */
} ms_unsupported;

/* A model by its name in lower case without ' ', '-' and '_'. A row's model contains
 * `name`, or if `name` is '^' and a text, has a word that begins with the text. */
typedef struct ms_known_model {
    const char *name;
    bool gated;        /* matches only rows whose MLP is, or may be, gated */
    const char *model; /* name in configs/models/; NULL if only the kind is known */
    /* Name in configs/models/ of a model of this kind, which supplies values that rows
     * do not state. */
    const char *like;
    bool four_hidden; /* the MLP is 4 hidden sizes wide if the row states no width */
    long vocab;       /* vocabulary if the table row states none; 0: rows must state it */
    int style;        /* an ms_model_style */
    int unsupported;  /* an ms_unsupported */
} ms_known_model;

typedef struct ms_network_name {
    const char *name;
    const char *network; /* key of a profile's networks; NULL if none is implied */
    /* network without coefficients, for which `network` stands in; NULL otherwise */
    const char *instead_of;
} ms_network_name;

typedef struct ms_link_name {
    const char *name;
    double bytes_per_s; /* rate of one adapter */
} ms_link_name;

typedef struct ms_recompute_name {
    const char *name;
    bool whole; /* the table row's cell must equal `name`; false: contain it */
    int mode;   /* recomputation, an ms_recompute */
} ms_recompute_name;

typedef struct ms_precision_name {
    const char *name;
    int dtype;  /* data type, an ms_dtype */
    int recipe; /* scaling of operands, an ms_recipe */
} ms_precision_name;

/* Facts about the runs of a source or a framework that its table does not state. */
typedef struct ms_pubrun_fact {
    const char *source;    /* beginning of a word of the source; NULL: any source */
    const char *framework; /* substring of the framework's cell; NULL: any */
    /* (const char *) substrings that the framework's cell must not have */
    ms_list but_not;
    const char *network; /* network of runs that state none; NULL if not known */
    /* memory is in units of 1e9 bytes, whatever its column is called */
    bool decimal_memory;
    bool device_memory; /* memory of rows that state no kind is what the driver sees */
    bool changes_mathematics;
} ms_pubrun_fact;

typedef struct ms_kernel_fact {
    const char *source; /* beginning of the table row's source */
    /* the benchmark runs without pause until the device clocks down to its power limit */
    bool unpaused;
} ms_kernel_fact;

/* Measured collectives that validation leaves out, with the reason. */
typedef struct ms_collective_fact {
    const char *source, *system; /* substrings of the table row's texts; NULL: any */
    const char *collective;      /* name of the collective; NULL: any */
    bool several_nodes;          /* leaves out only rows of more than one node */
    double most_bytes;           /* largest size that is left out, bytes; 0: all sizes */
    double below_s; /* leaves out rows measured at fewer seconds than this; 0: all */
    const char *reason;
} ms_collective_fact;

typedef struct ms_name_tables {
    ms_arena *arena; /* owns texts made while names are looked up */
    /* (const char *) texts allowed right before, right after a device's name */
    ms_list before, after;
    ms_list memories_gib; /* (double) memory sizes that devices are sold with */
    double most_gib; /* GiB: a larger stated memory is the sum over several devices */
    ms_list devices, racks, drivers, systems;
    ms_list frameworks, models, networks, links, recompute, precision;
    ms_list run_facts, kernel_facts, collective_facts;
} ms_name_tables;

/* Reads all files of configs/names/ into cx->arena. MS_EIO if a file is missing,
 * MS_EINPUT, with the place in the file, if it is malformed. */
ms_status ms_name_tables_load(ms_ctx *cx, const ms_name_tables **out);

/* The first row of `list` (systems or drivers) that matches a name and number of nodes;
 * NULL if none. */
const ms_system_name *ms_system_name_find(ms_list list, const char *name, long nodes);

#endif
