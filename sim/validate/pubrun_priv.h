/* Internals of the pubrun*.c files: the cells of a table row, and the tables that
 * translate its names. */
#ifndef MS_SIM_VALIDATE_PUBRUN_PRIV_H
#define MS_SIM_VALIDATE_PUBRUN_PRIV_H

#include "base/cells.h"
#include "sim/validate/name_tables.h"
#include "sim/validate/pubrun.h"

/* Cells of one row of published runs by column name. An absent cell is NULL (text), -1
 * (count) or NaN (measurement). */
typedef struct ms_pubrun_cells {
    const char *id, *source, *date, *model, *gpu_type, *network, *schedule, *recompute,
        *precision, *compile, *framework;
    /* text columns that a file may lack */
    const char *plan, *notes, *status, *memory_kind, *memory_rank, *offload, *optimizer;
    long layers, hidden, heads, kv_heads, head_dim, ffn_hidden, gated_ffn, vocab,
        tied_embeddings, experts, top_k, moe_ffn_hidden, shared_experts;
    /* columns that a file may lack */
    long gpus_per_node, flash_attention, lora_rank, dense_layers, zero_shard;
    long seq, mbs, gbs_seqs, gpus, dp_replicate, dp_shard, tp, sp, async_tp, pp, cp, ep,
        zero_stage;
    double tokens_per_s_per_gpu, step_s, peak_mem_gib;
    /* values that ms_pubrun_take_flags fills in; 0: not stated */
    long first_rank_layers, last_rank_layers; /* layers of an end of the pipeline */
    long optimizer_instances; /* groups of ranks that each hold all optimizer states */
    bool fuses_loss, qk_norm;
    bool is_deterministic;         /* ms_stack.deterministic */
    bool names_flash_attention;    /* FlashAttention itself, not any fused kernel */
    bool lacks_engine;             /* no layer is Transformer Engine's */
    bool lacks_grouping;           /* products of experts are not grouped */
    bool gathers_tokens;           /* experts' tokens come by an all-gather */
    bool makes_mask;               /* the data loader makes the mask of attention */
    long expert_tensor;            /* tp ranks that share an expert */
    const char *recompute_modules; /* names of modules (ms_module_names); NULL: none */
    /* notes on counts that were read from words: "tp \"TP4\" read as 4"; NULL if none */
    const char *words;
} ms_pubrun_cells;

/* Finds the columns of published runs in the header of `csv`. */
ms_status ms_pubrun_cells_open(ms_ctx *cx, const char *file, ms_csv *csv,
                               ms_cell_columns *out);
/* Reads the cells of one row. Returns NULL, or a text that names the malformed cell. */
const char *ms_pubrun_cells_read(ms_arena *arena, const ms_cell_columns *found,
                                 const ms_csv_row *row, ms_pubrun_cells *out);

/* Takes flags of Megatron-LM that the row's notes list into cells that the row leaves
 * empty. Returns NULL, or why a run with these flags cannot be predicted. */
const char *ms_pubrun_take_flags(ms_arena *arena, ms_pubrun_cells *cells);

/* Returns the table row with its counts and measurements as plain numbers. Appends to
 * *words a note on every cell that was converted, and sets *remark to the bracketed
 * remark of the pp column. */
ms_csv_row ms_pubrun_words_read(ms_arena *arena, const ms_cell_columns *found,
                                const ms_csv_row *row, const char **words,
                                const char **remark);

/* ---- names ---- */

/* Finds a model by its name; `gated`: its MLP is gated, or may be. Never NULL: if no row
 * of the list matches, the result is one that is not supported. */
const ms_known_model *ms_known_model_find(const ms_name_tables *names, const char *text,
                                          bool gated);
/* Finds a model's kind, not its shapes: for rows that state other shapes than those of
 * the model that their name means. */
const ms_known_model *ms_known_kind_find(const ms_name_tables *names, const char *text,
                                         bool gated);
/* Returns NULL, or why models of that name are not predicted. */
const char *ms_known_model_refusal(const ms_known_model *known);

/* Returns the text in lower case without ' ', '-' and '_'; "" for NULL. */
const char *ms_plain_text(ms_arena *arena, const char *text);
/* Whether a word of the text begins with the name (as ms_plain_text writes it), ignoring
 * spaces and hyphens of the text: "Meta" begins a word of "Meta AI", but not of "same
 * table". */
bool ms_begins_word(const char *text, const char *name);

/* Name of the table row's cluster in configs/clusters/; NULL if unknown. */
const char *ms_pubrun_cluster_name(const ms_name_tables *names,
                                   const ms_pubrun_cells *cells);
/* Whether the cell of the GPU type names devices of several kinds: "H100 / A100". */
bool ms_pubrun_mixes_devices(const ms_name_tables *names, const ms_pubrun_cells *cells);
/* Whether the cell of the GPU type names several memory sizes of one device: "A100
 * 40/80GB". */
bool ms_pubrun_mixes_memories(const ms_name_tables *names, const ms_pubrun_cells *cells);
/* Memory of one device that the cell of the GPU type states, in GiB; 0 if none. */
double ms_pubrun_stated_gib(const ms_name_tables *names, const ms_pubrun_cells *cells);
const char *ms_pubrun_stack_name(const ms_name_tables *names,
                                 const ms_pubrun_cells *cells);
/* Whether the framework's cell names no known framework, but the source's cell does. */
bool ms_pubrun_stack_is_of_source(const ms_name_tables *names,
                                  const ms_pubrun_cells *cells);
/* Whether the table row's date is known and before the month, given as 202301. */
bool ms_pubrun_is_before(const ms_pubrun_cells *cells, long month);
/* Sequences per step in the framework's published configurations; 0 if not known. */
long ms_pubrun_default_batch(const ms_name_tables *names, const ms_pubrun_cells *cells);

/* Statements of a table row on its network that its cluster lacks or contradicts. */
typedef struct ms_pubrun_network {
    const char *name; /* key of a profile's networks; NULL if not stated */
    /* the stated network, if `name` only stands in for it; NULL otherwise */
    const char *instead_of;
    double bytes_per_s_per_gpu; /* stated rate; NaN if not stated */
} ms_pubrun_network;
/* Reads the network that a table row states. The text's own words determine whether a
 * rate is per GPU or per node; without such words a rate above the cluster's rate per GPU
 * is a node's. A link type alone ("EDR") is the rate of each NIC that the cluster has. */
ms_pubrun_network ms_pubrun_network_of(const ms_name_tables *names,
                                       const ms_pubrun_cells *cells,
                                       const ms_cluster *cluster);

/* Combines all facts of configs/names/ (ms_pubrun_fact) that apply to the run. */
ms_pubrun_fact ms_pubrun_facts_of(const ms_name_tables *names,
                                  const ms_pubrun_cells *cells);
/* Reads a precision, and the recipe if it names one, into the plan; NULL means bf16.
 * Returns false for an unknown name. */
bool ms_pubrun_precision(const ms_name_tables *names, const char *precision,
                         ms_plan *plan);

/* Reads a recomputation mode. Returns false for a word that is not known. */
bool ms_pubrun_recompute(const ms_name_tables *names, const char *text,
                         ms_recompute *out);
/* The modules of Megatron Core that a text names, as a set of ms_module: "[moe_act mlp]",
 * "selective:core_attn"; 0: none. */
int ms_pubrun_modules(const char *text);
/* Sets the modules that selective recomputation repeats, if the row names them in its
 * flags or in `text`, its word for recomputation; those that the model lacks have no
 * effect. */
void ms_pubrun_set_modules(const ms_pubrun_cells *cells, const char *text,
                           ms_pubrun *run);

/* ---- configurations and models, each made once ---- */

/* Comma-separated notes on values of a run that were filled in. */
typedef struct ms_pubrun_notes {
    ms_arena *arena;
    const char *text; /* notes; NULL if there are none */
} ms_pubrun_notes;
void ms_pubrun_note(ms_pubrun_notes *notes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets compilation and CUDA graphs of run->plan as the table row's compile_or_fused states
 * them: layers compiled ("torch.compile") or not ("eager"), and "CUDA graphs" of layers.
 * A stack without numbers for it is priced as it is, with a note. */
void ms_pubrun_set_host(const ms_pubrun_cells *cells, ms_pubrun_notes *notes,
                        ms_pubrun *run);

/* Sets schedule and virtual stages of run->plan, whose layout, batch, model and stack are
 * set already: as the table row names them, else by its stack's conventions, which adds a
 * note. Returns NULL, or why the row cannot be predicted. */
const char *ms_pubrun_set_schedule(const ms_pubrun_cells *cells, ms_pubrun_notes *notes,
                                   ms_pubrun *run);

/* Sets layers per stage of a run whose flags state those of the pipeline's ends. */
void ms_pubrun_set_layers(const ms_pubrun_cells *cells, ms_arena *arena, ms_pubrun *run);

/* Reads kind and rank of the run's memory figure; run->stack is set. Returns NULL, or why
 * the figure cannot be compared. */
const char *ms_pubrun_set_memory_kind(const ms_pubrun_cells *cells, ms_pubrun *run);
/* Notes cells with values that their columns do not allow, and the values taken
 * instead. */
void ms_pubrun_odd_cells_note(const ms_pubrun_cells *cells, ms_pubrun_notes *notes);

typedef struct ms_pubrun_store ms_pubrun_store;
/* Whether all seconds of the run's offloading are known; if not, those unknown count 0. */
bool ms_pubrun_times_offload(const ms_pubrun *run);
/* Sets run->stack to what the table row says of optimizer types and loss, and the offload
 * of run->plan. Returns NULL, or which of them cannot be priced. */
const char *ms_pubrun_set_states(ms_pubrun_store *store, const ms_pubrun_cells *cells,
                                 ms_pubrun_notes *notes, ms_pubrun *run);
/* Sets the run's plan, and all that follows from it, by a row whose cell `plan` holds a
 * plan as JSON. Returns NULL, or why the row cannot be predicted. */
const char *ms_pubrun_read_plan(ms_ctx *cx, ms_pubrun_store *store,
                                const ms_pubrun_cells *cells, ms_pubrun *run);
/* Sets all of a run but its place by a row's cells: a reason where it cannot be
 * predicted, a fault where the row contradicts itself. */
void ms_pubrun_read_row(ms_ctx *cx, ms_pubrun_store *store, const ms_pubrun_cells *cells,
                        ms_pubrun *run);
/* Opens a store of configurations and models, each loaded once; reads configs/names/.
 * Stored objects belong to the context's arena. */
ms_status ms_pubrun_store_open(ms_ctx *cx, ms_pubrun_store **out);
/* Has the store give these files, where set, for every profile and stack. */
void ms_pubrun_store_use(ms_pubrun_store *store, const ms_pubrun_files *files);
const ms_name_tables *ms_pubrun_store_names(const ms_pubrun_store *store);
/* Loads a cluster by name; NULL if it cannot be loaded. */
const ms_cluster *ms_pubrun_store_cluster(ms_ctx *cx, ms_pubrun_store *store,
                                          const char *name);
/* The cluster as a table row describes it: with the row's GPUs per node if the innermost
 * domain is a node, and its network if `profile` has coefficients for it. Of rack-scale
 * domains the job takes equal shares: the largest divisor of its GPUs that fits a domain
 * (schedulers fill 64 of the 72 GPUs of an NVL72 rack). */
const ms_cluster *ms_pubrun_store_cluster_of(ms_pubrun_store *store,
                                             const ms_cluster *cluster,
                                             const ms_profile *profile,
                                             const ms_pubrun_cells *cells,
                                             ms_pubrun_notes *notes);
const ms_profile *ms_pubrun_store_profile(ms_ctx *cx, ms_pubrun_store *store,
                                          const char *name);
const ms_stack *ms_pubrun_store_stack(ms_ctx *cx, ms_pubrun_store *store,
                                      const char *name);
/* The stored stack `of` with the members of `changed`; `change` tells variants of one
 * stack apart. Equal variants are one object, since runs share what is priced by stack. */
const ms_stack *ms_pubrun_store_variant(ms_pubrun_store *store, const ms_stack *of,
                                        const char *change, const ms_stack *changed);
/* The stack with the attention that a table row states: if `flash` at least
 * FlashAttention 2, or 3 if `newer`; else unfused. */
const ms_stack *ms_pubrun_store_attention(ms_pubrun_store *store, const ms_stack *stack,
                                          bool flash, bool newer);
/* The stack with the FP8 recipe that a table row states: torchtitan all-gathers FP8 over
 * tp only with tensorwise scales, not with rowwise ones
 * (torchtitan/models/llama3/infra/parallelize.py, enable_float8_tensorwise_tp). */
const ms_stack *ms_pubrun_store_recipe(ms_pubrun_store *store, const ms_stack *stack,
                                       const char *precision);

/* ---- layouts ---- */

/* The degree of parallelism that a table row states; 1 where it states none. */
long ms_pubrun_degree(long stated);
/* Fills in what the table row does not state about GPUs, degrees and experts by the
 * defaults of its stack (NULL if unknown), and notes it. */
void ms_pubrun_layout_fill(ms_pubrun_cells *cells, const ms_stack *stack,
                           ms_pubrun_notes *notes);
/* Default ep of a table row that states none: the greatest common divisor of the ranks of
 * a stage and the experts. Token dispatchers are made for it; large mixtures fit in no
 * other way. */
long ms_pubrun_default_ep(const ms_pubrun_cells *cells, long num_experts);
/* Whether a table row's status says that its run crashed or ran out of memory. */
bool ms_pubrun_is_unfinished(const ms_pubrun_cells *cells);
/* Returns NULL, or what a table row lacks that would have to be guessed. */
const char *ms_pubrun_gap(ms_ctx *cx, ms_pubrun_store *store,
                          const ms_pubrun_cells *cells);
/* Returns NULL, or how a row's degrees of parallelism contradict its number of GPUs. */
const char *ms_pubrun_contradiction(ms_arena *arena, const ms_pubrun_cells *cells);

/* Returns NULL, or what the table row does not state about the architecture. */
const char *ms_pubrun_model_gap(ms_ctx *cx, ms_pubrun_store *store,
                                const ms_pubrun_cells *cells);
/* Returns NULL, or why the table row's model cannot be predicted: its name is of an
 * unsupported model, whatever its columns state, or joins several sizes while layers and
 * width do not determine which one ran. */
const char *ms_pubrun_model_unsupported(ms_ctx *cx, ms_pubrun_store *store,
                                        const ms_pubrun_cells *cells);
/* The table row's model as `stack` trains it with `tp`; equal models are one object. NULL
 * with *reason set if the shapes do not fit together. */
const ms_model *ms_pubrun_model(ms_ctx *cx, ms_pubrun_store *store,
                                const ms_pubrun_cells *cells, const ms_stack *stack,
                                ms_pubrun_notes *notes, const char **reason);

#endif
