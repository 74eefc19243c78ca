/* Tables of formats, and what their rows may call. */
#ifndef MS_COSTMODEL_PORT_PORT_PRIV_H
#define MS_COSTMODEL_PORT_PORT_PRIV_H

#include "costmodel/port/port.h"

/* One export or import under way. */
typedef struct ms_port {
    ms_ctx *cx;
    const ms_port_format *format;
    ms_plan *plan;
    ms_model *model;
    const ms_stack *stack;
    const ms_rule_set *rules;
    ms_port_settings *settings;
    ms_texts *left_out;   /* export */
    ms_texts *assumed;    /* import */
    bool moe;             /* the model has experts */
    long gpus_per_node;   /* export: GPUs of a node */
    long gpus;            /* import: given by the user; 0: the file says */
    long sequence_length; /* import: likewise */
    bool overrides;       /* import: `gpus` replaces the number of the file */
    const bool *given;    /* import: (MS_NUM_CHOICES) that flags state; NULL: none */
} ms_port;

typedef struct ms_port_word {
    const char *text;
    long value;
} ms_port_word;

typedef enum ms_port_kind {
    MS_PORT_END, /* {0} ends a table */
    MS_PORT_WHOLE,
    MS_PORT_NUMBER,
    MS_PORT_ON,   /* a flag, or true */
    MS_PORT_WORD, /* one of `words` */
    MS_PORT_OWN,  /* functions `put` and `take` */
    MS_PORT_ALSO, /* written with `value` where `when` holds; says nothing about a plan */
    MS_PORT_FIXED /* no key: the format has this one value of the choice */
} ms_port_kind;

/* The struct and member that a row holds. */
typedef enum ms_port_of {
    MS_OF_PLAN, /* choice `choice` */
    MS_OF_MODEL /* member at `offset`: long, double, bool or enum, by the kind */
} ms_port_of;

typedef struct ms_port_row {
    ms_port_kind kind;
    const char *key;
    const char *alias; /* another key of the same meaning, read only; NULL: none */
    ms_port_of of;
    int choice;    /* ms_choice; -1: none */
    size_t offset; /* in ms_model */
    const ms_port_word *words;
    const char *value; /* value of an MS_PORT_ALSO */
    double absent;     /* value that the framework takes where the key is absent */
    bool always;       /* written even if `absent` */
    bool required;     /* the framework has no default */
    bool soft;         /* changes values of a model, no shape */
    bool (*when)(const ms_port *port); /* whether it has effect; NULL: always */
    /* MS_PORT_OWN: writes the settings of a plan; reads them. `keys`: those besides `key`;
     * `choices`: those besides `choice`, ended by -1; both may be NULL */
    void (*put)(ms_port *port);
    ms_status (*take)(ms_port *port);
    const char *const *keys;
    const int *choices;
} ms_port_row;

struct ms_port_format {
    const char *name;
    const char *stack;       /* stack of plans that name no stack with these rules */
    const char *rules;       /* name of the rules file */
    const char *other_rules; /* rules whose plans the format has, too; NULL: none */
    /* in the order of export and import; the first holds the model's shapes */
    const ms_port_row *tables[4];
    /* keys that say nothing about a plan, NULL-ended; parts of words that no other key
     * may have, because it would be about parallelism */
    const char *const *ignored;
    const char *const *reserved;
    /* parts of text that files of this format have and those of no other, NULL-ended */
    const char *const *marks;
    const char *kind_key; /* key that says which others are read; NULL: none does */
    ms_status (*read)(ms_port *port, const char *name, const char *text, size_t length);
    /* after all rows: ranks, batch */
    ms_status (*finish)(ms_port *port);
    void (*write)(FILE *out, ms_arena *arena, const ms_plan *plan,
                  const ms_port_exported *exported,
                  const ms_port_export_options *options);
    /* whether a plan without layers_per_stage needs them to be said; NULL: none does */
    bool (*needs_layers)(const ms_plan *plan, const ms_model *model);
    const char *until; /* version of the framework that has no such file; NULL: none */
};

extern const ms_port_format ms_port_megatron, ms_port_torchtitan, ms_port_nanotron,
    ms_port_deepspeed, ms_port_accelerate, ms_port_maxtext;

/* ---- export ---- */

/* Writes the settings of one row. */
void ms_port_put_row(ms_port *port, const ms_port_row *row);
/* Adds a setting; `value` NULL: a flag. */
void ms_port_put(ms_port *port, const char *key, const char *value);
/* Adds a setting whose value is a text, not a number or switch. */
void ms_port_put_text(ms_port *port, const char *key, const char *value);
void ms_port_put_whole(ms_port *port, const char *key, long value);
void ms_port_put_number(ms_port *port, const char *key, double value);
/* Records what the format cannot express: "schedule zb-h1". */
void ms_port_leave_out(ms_port *port, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Records a choice of the plan with its value. */
void ms_port_leave_choice(ms_port *port, ms_choice choice);
/* Whether the framework's version is at least 0.MINOR. */
bool ms_port_since(const ms_port *port, long minor);
/* Nodes of the job, and the ranks on each. */
long ms_port_nodes(const ms_plan *plan, const ms_port_export_options *options,
                   long *per_node);
/* Writes the command that starts a program, with `mark` before its lines. */
void ms_port_write_launcher(FILE *out, const ms_plan *plan,
                            const ms_port_export_options *options, const char *mark,
                            const char *program);
/* The comments of an exported file: the plan, what is left out. */
ms_texts ms_port_head(ms_arena *arena, const ms_plan *plan,
                      const ms_port_exported *exported);
/* Writes them, a line each after `mark`. */
void ms_port_write_head(FILE *out, ms_arena *arena, const char *mark, const ms_plan *plan,
                        const ms_port_exported *exported);

/* ---- import ---- */

void ms_port_add(ms_arena *arena, ms_port_settings *list, ms_port_setting setting);
void ms_port_assume(ms_port *port, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Whether the user states a choice in place of the file. */
bool ms_port_is_given(const ms_port *port, ms_choice choice);
/* The last setting of a key, marked as used; NULL: the file has none. */
ms_port_setting *ms_port_find(ms_port *port, const char *key);
bool ms_port_has(ms_port *port, const char *key);
/* Whether a switch is on. MS_EINPUT: its value is no truth value. */
ms_status ms_port_take_on(ms_port *port, const char *key, bool *out);
/* Reads a key as a number within [low, high]; `*out` stays unchanged where it is absent. */
ms_status ms_port_take_whole(ms_port *port, const char *key, long low, long high,
                             long *out);
ms_status ms_port_take_number(ms_port *port, const char *key, double low, double high,
                              double *out);
/* Reads a key as one of the words; unchanged where it is absent. */
ms_status ms_port_take_word(ms_port *port, const char *key, const ms_port_word *words,
                            long *out);
/* Sets the sequence length of a file without one: the user's, or that of default plans. */
ms_status ms_port_take_length(ms_port *port);
/* MS_EINPUT at the setting. */
ms_status ms_port_fail(ms_port *port, const ms_port_setting *setting, const char *format,
                       ...) __attribute__((format(printf, 3, 4)));
/* MS_EINPUT: a key is missing. */
ms_status ms_port_fail_missing(ms_port *port, const char *key, const char *hint);
/* The word of a value; NULL: none. */
const char *ms_port_word_of(const ms_port_word *words, long value);

/* Sets dp_shard and dp_replicate so that all ranks are used, of which `replicas` hold equal
 * shards; `ranks` are those of a model copy without data parallelism. */
ms_status ms_port_set_ranks(ms_port *port, long gpus, long replicas);
/* Keeps the plan's degrees and makes data parallelism use all ranks: shards take the rest;
 * of plans that have only replicas these do. */
ms_status ms_port_fit_ranks(ms_port *port, long gpus);

#endif
