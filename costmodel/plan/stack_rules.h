/* Rules of a training framework: the plans that it can express and accepts. They are data
 * (configs/rules/<name>.json): expressions over a plan's choices and a model's shapes,
 * each with the versions in which it holds and its source. A stack names its rules. */
#ifndef MS_COSTMODEL_PLAN_STACK_RULES_H
#define MS_COSTMODEL_PLAN_STACK_RULES_H

#include "costmodel/plan/expression.h"
#include "costmodel/plan/plan_field.h"

/* Variables of rules: a plan's choices that are numbers, switches or words, by their name
 * in ms_plan_fields, then these. */
typedef enum ms_fact {
    MS_FACT_DP = MS_NUM_CHOICES, /* dp_replicate * dp_shard */
    MS_FACT_MICROBATCHES,        /* micro-batches per step and rank */
    MS_FACT_GROUP,               /* interleaving group; the default is pp */
    MS_FACT_SCHEDULE_FILE,       /* 1: the schedule is from a file */
    MS_FACT_AXES,        /* word: order of the axes above size 1, ms_fact_orders */
    MS_FACT_LAYER_SPLIT, /* word: layers of the virtual stages, ms_layer_shapes */
    MS_FACT_OWN_SPLIT,   /* 1: the stack's own distribution of layers */
    MS_FACT_LAYERS,
    MS_FACT_HEADS,
    MS_FACT_KV_HEADS,
    MS_FACT_EXPERTS,     /* 0: a dense model */
    MS_FACT_EXPERT_BIAS, /* 1: experts have biases */
    MS_FACT_MLA,         /* 1: multi-head latent attention */
    MS_FACT_WINDOWS,     /* 1: a layer has sliding-window attention */
    MS_FACT_MTP,         /* modules of multi-token prediction */
    MS_FACT_TIED,        /* 1: the head reuses the embedding */
    MS_FACT_MAMBA,       /* 1: a layer is a Mamba-2 mixer */
    MS_NUM_FACTS
} ms_fact;

/* Distributions of layers over virtual stages, from strict to free. */
typedef enum ms_layer_shape {
    MS_LAYERS_EQUAL,
    MS_LAYERS_SHORT_ENDS, /* first stage, last or both have one layer less than others */
    MS_LAYERS_OWN_ENDS, /* chunks of a rank are equal, and those of all ranks between the
                           first and the last */
    MS_LAYERS_FREE
} ms_layer_shape;

typedef struct ms_rule {
    const char *name; /* "interleaving", unique in a version */
    const char *says; /* the framework's demand in words */
    const char *source;
    const char *since, *until; /* first version, first version without; NULL: no limit */
    const char *when_text;     /* `when` as written; NULL: all plans */
    ms_expression when, need;  /* plans for which `when` holds must fulfil `need` */
} ms_rule;

/* Parts of architectures; a model may have several. */
typedef enum ms_architecture {
    MS_TRAINS_DENSE, /* layers of attention and a dense MLP */
    MS_TRAINS_EXPERTS,
    MS_TRAINS_MLA,
    MS_TRAINS_WINDOWS,
    MS_TRAINS_MTP,
    MS_TRAINS_MAMBA, /* Mamba-2 mixers */
    MS_NUM_ARCHITECTURES
} ms_architecture;
/* "dense" "experts" "mla" "windows" "mtp" "mamba", NULL */
extern const char *const ms_architecture_names[];

/* A rules file in one version, and its place among the rules of a set. */
typedef struct ms_rules_file {
    const char *name, *source, *version;
    int num_versions;
    const char *const *versions; /* (num_versions): known ones, oldest first */
    int first_rule, num_rules;
} ms_rules_file;

#define MS_MAX_RULES 64 /* rules of one version, with those of the stack's lists */

typedef struct ms_rule_set {
    /* name, source and versions of the first file; NULL: no rules are known */
    const char *name, *source;
    const char *version;
    int num_versions;
    const char *const *versions; /* (num_versions): known ones, oldest first */
    int num;
    const ms_rule *rules; /* (num): those of the version */
    int num_files;
    const ms_rules_file *files; /* (num_files): in the order of the stack's `rules` */
    /* [ms_architecture] where the framework states that it trains this; NULL: nowhere */
    const char *trains[MS_NUM_ARCHITECTURES];
} ms_rule_set;

/* Values of the variables for one plan. */
typedef struct ms_facts {
    long of[MS_MAX_VARIABLES];
} ms_facts;

/* The variables, with words; for docs, hints and tests. */
const ms_variable *ms_rule_variables(void);

/* Loads the rules that a stack names (stack->rules, stack->version). MS_EINPUT: bad rules
 * file, or a version that the file does not list; MS_EIO. */
ms_status ms_rule_set_load(ms_ctx *cx, const ms_stack *stack, ms_rule_set *out);
/* Reads a parsed rules file for a version; NULL: the file's default. */
ms_status ms_rule_set_read(ms_ctx *cx, ms_jval root, const char *version,
                           ms_rule_set *out);

/* The facts of a plan. Without layers_per_stage the stack's own distribution is judged by
 * its kind (ms_layer_split). MS_FACT_OWN_SPLIT is 1 unless the plan has layers_per_stage:
 * callers that know the stack's own distribution set it. */
ms_facts ms_facts_of(const ms_plan *plan, const ms_model *model, const ms_stack *stack);

/* The layout string that launches the plan's layers_per_stage, for stacks that take one:
 * "Et*14|t*13|t*13L" has an embedding, 40 layers and the loss on 3 stages; NULL: stages
 * are equal, or the stack or its version (rules) takes none. Source: Megatron-LM,
 * core/transformer/pipeline_parallel_layer_layout.py. */
const char *ms_plan_layout_text(ms_arena *arena, const ms_plan *plan,
                                const ms_model *model, const ms_stack *stack,
                                const ms_rule_set *rules);

/* Updates the facts of a schedule: its kind, virtual stages, group, own distribution. */
void ms_facts_set_schedule(ms_facts *facts, const ms_plan *plan, const ms_stack *stack);

/* The first rule that the facts break, among rules that read only the variables of
 * `known` (bit i: variable i) and at least one of `fresh`; NULL: none. All: MS_ALL_VARIABLES. */
const ms_rule *ms_rule_broken(const ms_rule_set *set, const ms_facts *facts,
                              ms_variables known, ms_variables fresh);

/* Command-line default of a choice, given all choices before it: that of the stack
 * (ms_plan_usual), or the nearest smaller value, else the first larger one, that no rule
 * refuses which reads the choice and only choices up to it. The stack's if there is none,
 * and for numbers other than the ZeRO stage. */
long ms_rule_default(const ms_rule_set *set, const ms_plan *plan, const ms_stack *stack,
                     ms_choice choice);

/* The values of the variables that a rule reads: "pp 4, microbatches 10". */
const char *ms_rule_values_text(ms_arena *arena, const ms_rule *rule,
                                const ms_facts *facts);

#endif
