/* Folder costmodel/port: plans in the words of training frameworks: a table per format,
 * from which both directions follow, and readers of the formats' files; no prices.
 *
 * Export and import of plans. A format's file is a list of settings (a key and its
 * value); rows of the format's table say which setting holds which choice of a plan or
 * shape of a model, and how it is written. */
#ifndef MS_COSTMODEL_PORT_PORT_H
#define MS_COSTMODEL_PORT_PORT_H

#include "base/texts.h"
#include "costmodel/plan/stack_rules.h"

/* One setting of a file. */
typedef struct ms_port_setting {
    const char *key;   /* "--seq-length", "parallelism.tensor_parallel_degree" */
    const char *value; /* text of the value; NULL: a flag without one */
    ms_loc loc;        /* place in the file; absent on export */
    bool quoted;       /* export: a text, which files with types put in quotes */
    bool used;         /* import: a row has read it */
    bool unsettled; /* import: its text depends on what a script decides when it runs */
} ms_port_setting;

typedef struct ms_port_settings {
    ms_port_setting *rows; /* (num), in the order of the file */
    int num, capacity;
} ms_port_settings;

typedef struct ms_port_format ms_port_format;

/* Program that starts the processes of an exported job. */
typedef enum ms_port_launcher {
    MS_PORT_TORCHRUN,
    MS_PORT_SRUN,
    MS_PORT_NO_LAUNCHER /* settings alone */
} ms_port_launcher;
extern const char *const ms_port_launchers[]; /* "torchrun" "srun" "none", NULL */

/* Names of the formats, NULL-ended. */
extern const char *const ms_port_format_names[];
/* MS_EINPUT, with the list of formats, for names of none. */
ms_status ms_port_format_find(ms_ctx *cx, const char *name, const ms_port_format **out);
const char *ms_port_format_name(const ms_port_format *format);
/* The format whose marks a file's text has most of; NULL: it has none, or two formats have
 * equally many. */
const ms_port_format *ms_port_format_of_text(ms_arena *arena, const char *text,
                                             size_t length);
/* The name of the first format with the rules of a stack; megatron for stacks without. */
const char *ms_port_format_name_of(const ms_stack *stack);
/* The stack by whose rules and defaults plans of the format are judged: `stack` itself if
 * it has the format's rules, otherwise the one the format names. */
const char *ms_port_format_stack(const ms_port_format *format, const char *name,
                                 const ms_stack *stack);

/* ---- export ---- */

/* Whether the format can express the plan only with layers_per_stage, which it lacks. */
bool ms_port_needs_layers(const ms_port_format *format, const ms_plan *plan,
                          const ms_model *model);

typedef struct ms_port_export_options {
    ms_port_launcher launcher;
    long gpus_per_node;
} ms_port_export_options;

typedef struct ms_port_exported {
    ms_port_settings settings;
    ms_texts left_out; /* "lora_rank 16": what the format cannot express */
} ms_port_exported;

/* A plan that is exported: legal for its model, and obeying the rules of its stack. */
typedef struct ms_port_subject {
    const ms_plan *plan;
    const ms_model *model;
    const ms_stack *stack;
    const ms_rule_set *rules;
    long gpus_per_node;
} ms_port_subject;

/* The settings of a plan in a format. Everything lives in cx->arena. MS_EINPUT: choices or
 * shapes that the format cannot express, unless `lossy`; a version without such a file. */
ms_status ms_port_export(ms_ctx *cx, const ms_port_format *format,
                         const ms_port_subject *subject, bool lossy,
                         ms_port_exported *out);
/* Writes what ms_port_export made as the format's own text, with the plan in one line. */
void ms_port_write(FILE *out, ms_arena *arena, const ms_port_format *format,
                   const ms_plan *plan, const ms_port_exported *exported,
                   const ms_port_export_options *options);

/* ---- import ---- */

typedef struct ms_port_import_options {
    const char *name;  /* the file in messages */
    const char *model; /* name or path of the plan's model; NULL: the file's shapes say */
    const char *cluster, *stack; /* NULL: hgx-h100; the format's */
    long gpus;                   /* 0: as many as the file's launcher starts */
    long sequence_length;        /* tokens; 0: the file says, or that of default plans */
    bool overrides; /* a model, length or number of GPUs given replaces the file's */
    /* (MS_NUM_CHOICES) choices that flags will state, so that the file's are not assumed;
     * NULL: none */
    const bool *given;
} ms_port_import_options;

typedef struct ms_port_imported {
    ms_plan plan;   /* plan.model may be NULL until ms_port_find_model */
    ms_model model; /* the shapes that the file states, and the framework's defaults */
    bool has_model; /* the file states shapes */
    ms_port_settings settings;
    ms_texts ignored; /* "--lr 3e-4": settings that no plan has */
    ms_texts assumed; /* "--cp-comm-type p2p": defaults that the plan took */
} ms_port_imported;

/* Reads a plan from `length` bytes of a format's file. Everything lives in cx->arena.
 * MS_EINPUT at the line and column: syntax, values that are wrong or that no plan has,
 * and unknown keys about parallelism. */
ms_status ms_port_import(ms_ctx *cx, const ms_port_format *format, const char *text,
                         size_t length, const ms_port_import_options *options,
                         ms_port_imported *out);
/* Sets plan.model, unless the user or the file names it: the model of configs/models whose shapes are those
 * of the file; differences that change no shape, and other models with equal shapes, are
 * added to `assumed`. `*out` is the model. MS_EINPUT: no model has these shapes. */
ms_status ms_port_find_model(ms_ctx *cx, const ms_port_format *format,
                             const ms_port_import_options *options,
                             ms_port_imported *imported, const ms_model **out);

#endif
