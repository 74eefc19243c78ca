/* Names that tables of measurements have for devices, frameworks, models, networks and
 * words, and what they stand for: data, read from configs/names/. Of every list the first
 * row that matches holds. docs/names.md shows them all. */
#ifndef MS_SIM_NAME_TABLES_H
#define MS_SIM_NAME_TABLES_H

#include "base/json.h"

/* A device by its name, in lower case; spaces stand for any gap or none. */
typedef struct ms_device_name {
    const char *name;
    double gib;          /* of memory, within 2 %; 0: any, or none stated */
    const char *word;    /* also in the text of the device or network; NULL: any */
    const char *cluster; /* in configs/clusters/; NULL: there is none */
    bool mixes;          /* beside another device's name it means a second device */
    ms_list host_gib;    /* double: memory of a Superchip's host, no device's */
} ms_device_name;

typedef struct ms_rack_name {
    const char *name;
    long gpus; /* of one domain */
} ms_rack_name;

/* A system, or a GPU as drivers call it, by a part of its name as it stands. */
typedef struct ms_system_name {
    const char *name;
    const char *with;    /* another part; NULL: none is needed */
    bool several_nodes;  /* of rows of more than one node */
    const char *cluster; /* in configs/clusters/; NULL: `reason` says why there is none */
    const char *reason;
} ms_system_name;

/* A framework by the name that a word of its cell begins with. */
typedef struct ms_framework_name {
    const char *name;
    const char *word;  /* in the cells of framework, flags or precision; NULL: any */
    const char *work;  /* as `word`, or a word of the source begins so; NULL: any */
    long before;       /* the first month that is too late, as 202301; 0: none */
    const char *stack; /* in configs/stacks/; NULL: unknown */
    long global_batch; /* that its published configurations have; 0: none */
} ms_framework_name;

typedef enum ms_model_style {
    MS_STYLE_AS_BASE,
    /* experts in every second layer; attention in chunks of 8192 in three of four */
    MS_STYLE_LLAMA4
} ms_model_style;

typedef enum ms_unsupported {
    MS_SUPPORTED,
    MS_UNSUPPORTED_UNKNOWN, /* neither stated by rows nor known here */
    MS_UNSUPPORTED_STATES,  /* state spaces or linear attention other than Mamba-2 */
    MS_UNSUPPORTED_ENCODER  /* beside the decoder */
} ms_unsupported;

/* A model by a part of its name in lower case without ' ', '-' and '_'; after '^' by the
 * begin of a word of it. */
typedef struct ms_known_model {
    const char *name;
    bool gated;        /* only of rows whose MLP is gated or not stated */
    const char *model; /* in configs/models/: the shapes; NULL: only a kind is known */
    const char *like;  /* of a kind, in configs/models/: what its rows do not state */
    bool four_hidden; /* the MLP is 4 hidden sizes wide where the row does not state it */
    long vocab;       /* where the row does not state it; 0: it must */
    int style;        /* ms_model_style */
    int unsupported;  /* ms_unsupported */
} ms_known_model;

typedef struct ms_network_name {
    const char *name;
    const char *network; /* key of a profile's networks; NULL: nothing is said about it */
    const char *instead_of; /* whose coefficients are not known; NULL: they are */
} ms_network_name;

typedef struct ms_link_name {
    const char *name;
    double bytes_per_s; /* of one adapter */
} ms_link_name;

typedef struct ms_recompute_name {
    const char *name;
    bool whole; /* the cell is this word; otherwise it contains it */
    int mode;   /* ms_recompute */
} ms_recompute_name;

typedef struct ms_precision_name {
    const char *name;
    int dtype; /* ms_dtype */
} ms_precision_name;

/* What is known of the runs of a source or a framework beside its table. */
typedef struct ms_run_fact {
    const char *source;    /* a word of the source begins so; NULL: any */
    const char *framework; /* in its cell; NULL: any */
    ms_list but_not;       /* const char *: in the framework's cell, too */
    const char *network;   /* of runs that state none; NULL: not known */
    bool decimal_memory;   /* in units of 1e9 bytes, whatever its column is called */
    bool changes_mathematics;
} ms_run_fact;

typedef struct ms_kernel_fact {
    const char *source; /* begins so */
    bool
        unpaused; /* calls follow one another for longer than a device exceeds its power */
} ms_kernel_fact;

/* Rows of measured collectives that say nothing about the collective. */
typedef struct ms_collective_fact {
    const char *source, *system; /* parts of their texts; NULL: any */
    const char *collective;      /* NULL: any */
    bool several_nodes;          /* of rows of more than one node */
    double most_bytes;           /* 0: any */
    double below_s;              /* measured times below it; 0: any */
    const char *reason;
} ms_collective_fact;

typedef struct ms_name_tables {
    ms_arena *arena; /* of texts that are made while names are looked up */
    /* const char *: what may stand before and after a device's name without a space */
    ms_list before, after;
    ms_list memories_gib; /* double: that devices are sold with */
    double most_gib;      /* more is of several devices */
    ms_list devices, racks, drivers, systems;
    ms_list frameworks, models, networks, links, recompute, precision;
    ms_list run_facts, kernel_facts, collective_facts;
} ms_name_tables;

/* Errors: a file that is missing or malformed, at its place. */
ms_status ms_name_tables_load(ms_ctx *cx, const ms_name_tables **out);

/* The row of `systems` or `drivers` for such a name; NULL: none. */
const ms_system_name *ms_system_name_find(ms_list list, const char *name, long nodes);

#endif
