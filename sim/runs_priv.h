/* Shared by the runs_*.c files: the cells of a row, and the tables that translate its
 * names. */
#ifndef MS_SIM_RUNS_PRIV_H
#define MS_SIM_RUNS_PRIV_H

#include "base/cells.h"
#include "sim/name_tables.h"
#include "sim/runs.h"

/* Cells by name. Absent: NULL, -1, NaN. */
typedef struct ms_run_cells {
    const char *id, *source, *date, *model, *gpu_type, *network, *schedule, *recompute,
        *precision, *compile, *framework;
    long layers, hidden, heads, kv_heads, head_dim, ffn_hidden, gated_ffn, vocab,
        tied_embeddings, experts, top_k, moe_ffn_hidden, shared_experts;
    long gpus_per_node, flash_attention; /* of columns that a file may lack */
    long seq, mbs, gbs_seqs, gpus, dp_replicate, dp_shard, tp, sp, async_tp, pp, cp, ep,
        zero_stage;
    double tokens_per_s_per_gpu, step_s, peak_mem_gib;
    const char *words; /* which counts were read from words, as what; NULL: none */
} ms_run_cells;

ms_status ms_run_cells_open(ms_ctx *cx, const char *file, ms_csv *csv,
                            ms_cell_columns *out);
/* NULL, or what is malformed in the row. */
const char *ms_run_cells_read(ms_arena *arena, const ms_cell_columns *found,
                              const ms_csv_row *row, ms_run_cells *out);

/* The row with its counts and measurements as numbers; what was read as what is put
 * behind *words, the remark of pp's in *remark. */
ms_csv_row ms_run_words_read(ms_arena *arena, const ms_cell_columns *found,
                             const ms_csv_row *row, const char **words,
                             const char **remark);

/* ---- names ---- */

/* Whose MLP is gated, or may be. Never NULL: where no row of the list matches, one that
 * is not supported. */
const ms_known_model *ms_known_model_find(const ms_name_tables *names, const char *text,
                                          bool gated);
/* The kind alone: for rows whose columns have other shapes than the model of that
 * name. */
const ms_known_model *ms_known_kind_find(const ms_name_tables *names, const char *text,
                                         bool gated);
/* NULL, or why models of the name are not predicted. */
const char *ms_known_model_refusal(const ms_known_model *known);

/* In lower case without ' ', '-' and '_'; NULL is "". */
const char *ms_plain_text(ms_arena *arena, const char *text);
/* Whether a word of the text begins with the plain name, whatever the text's spaces and
 * hyphens: "Meta", not "same table". */
bool ms_begins_word(const char *text, const char *name);

/* Names in configs/; NULL: unknown. */
const char *ms_run_cluster_name(const ms_name_tables *names, const ms_run_cells *cells);
/* Whether the cell names devices of several kinds: "H100 / A100". */
bool ms_run_mixes_devices(const ms_name_tables *names, const ms_run_cells *cells);
/* Whether it names memories of several kinds of one device: "A100 40/80GB". */
bool ms_run_mixes_memories(const ms_name_tables *names, const ms_run_cells *cells);
/* Memory of a device that its cell states, in GiB; 0: none. */
double ms_run_stated_gib(const ms_name_tables *names, const ms_run_cells *cells);
const char *ms_run_stack_name(const ms_name_tables *names, const ms_run_cells *cells);
/* Whether the framework's cell says nothing that is known, and the source's does. */
bool ms_run_stack_is_of_source(const ms_name_tables *names, const ms_run_cells *cells);
/* Whether the row's date is known and before the month, as 202301. */
bool ms_run_is_before(const ms_run_cells *cells, long month);
/* Sequences a step in the framework's published configurations; 0: none known. */
long ms_run_default_batch(const ms_name_tables *names, const ms_run_cells *cells);

/* What a row says about its network beyond what its cluster has. */
typedef struct ms_run_network {
    const char *name;       /* key of a profile's networks; NULL: not said */
    const char *instead_of; /* the network that was said, if it is not that one itself */
    double bytes_per_s_per_gpu; /* NaN: not said */
} ms_run_network;
/* A rate is a GPU's or a node's by the text's own words; without them one above the
 * cluster's own rate of a GPU is a node's. A kind of link alone ("EDR") is that of each
 * NIC that the cluster has. */
ms_run_network ms_run_network_of(const ms_name_tables *names, const ms_run_cells *cells,
                                 const ms_cluster *cluster);

/* What all rows of facts that fit the run say together. */
ms_run_fact ms_run_facts_of(const ms_name_tables *names, const ms_run_cells *cells);
/* NULL is bf16. False: a name that nothing is known of. */
bool ms_run_dtype(const ms_name_tables *names, const char *precision, ms_dtype *out);

/* What is computed again. False: a word that nothing is known of. */
bool ms_run_recompute(const ms_name_tables *names, const char *text, ms_recompute *out);

/* ---- configurations and models, each made once ---- */

/* Text about what was filled in, comma-separated. */
typedef struct ms_run_notes {
    ms_arena *arena;
    const char *text; /* NULL: nothing */
} ms_run_notes;
void ms_run_note(ms_run_notes *notes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Schedule and virtual stages of run->plan, whose layout, batch, model and stack are
 * there: as the row names them, else as its stack's runs have them, which is noted. NULL,
 * or why the row cannot be predicted. */
const char *ms_run_set_schedule(const ms_run_cells *cells, ms_run_notes *notes,
                                ms_published_run *run);

/* Notes cells that do not say what their column is for, and what they are taken as. */
void ms_run_odd_cells_note(const ms_run_cells *cells, ms_run_notes *notes);

typedef struct ms_run_store ms_run_store;
/* Reads configs/names/; what is stored belongs to the context's arena. */
ms_status ms_run_store_open(ms_ctx *cx, ms_run_store **out);
const ms_name_tables *ms_run_store_names(const ms_run_store *store);
/* NULL with a reason when it cannot be loaded. */
const ms_cluster *ms_run_store_cluster(ms_ctx *cx, ms_run_store *store, const char *name);
/* The same as a row describes it: its GPUs a node where domains are nodes, its network
 * where `profile` has coefficients for it, and racks of which a job of that many GPUs
 * takes equal shares, the largest divisor of it that fits in the innermost domain:
 * schedulers fill 64 of the 72 GPUs of an NVL72 rack. */
const ms_cluster *ms_run_store_cluster_of(ms_run_store *store, const ms_cluster *cluster,
                                          const ms_profile *profile,
                                          const ms_run_cells *cells, ms_run_notes *notes);
const ms_profile *ms_run_store_profile(ms_ctx *cx, ms_run_store *store, const char *name);
const ms_stack *ms_run_store_stack(ms_ctx *cx, ms_run_store *store, const char *name);
/* The same with the attention that a row states: unfused, or at least FlashAttention
 * 2. */
const ms_stack *ms_run_store_attention(ms_run_store *store, const ms_stack *stack,
                                       bool flash);
/* The same with the FP8 recipe that a row states: torchtitan gathers FP8 over tp with one
 * scale a tensor alone, not with one a row
 * (torchtitan/models/llama3/infra/parallelize.py, enable_float8_tensorwise_tp). */
const ms_stack *ms_run_store_recipe(ms_run_store *store, const ms_stack *stack,
                                    const char *precision);

/* ---- layouts ---- */

/* A degree of parallelism that a row states; 1 where it states none. */
long ms_run_degree(long stated);
/* Fills what the row leaves open about GPUs, degrees and experts with what its stack
 * (NULL: unknown) does by default, and notes it. */
void ms_run_layout_fill(ms_run_cells *cells, const ms_stack *stack, ms_run_notes *notes);
/* Where a row states no ep: as many of a stage's ranks as divide the experts. Dispatchers
 * are made for it, and large mixtures fit no other way. */
long ms_run_default_ep(const ms_run_cells *cells, long num_experts);
/* NULL, or what a row lacks that would have to be guessed. */
const char *ms_run_gap(ms_ctx *cx, ms_run_store *store, const ms_run_cells *cells);
/* NULL, or how the layout contradicts itself: such a row states none. */
const char *ms_run_contradiction(ms_arena *arena, const ms_run_cells *cells);

/* NULL, or what the row does not state about the architecture. */
const char *ms_run_model_gap(ms_ctx *cx, ms_run_store *store, const ms_run_cells *cells);
/* NULL, or why models of the row's name cannot be predicted: no columns help those that
 * are not supported; of several sizes in one name layers and width tell which. */
const char *ms_run_model_unsupported(ms_ctx *cx, ms_run_store *store,
                                     const ms_run_cells *cells);
/* The row's model as `stack` trains it with `tp`; equal models are one object. NULL with
 * a reason when the shapes do not fit together. */
const ms_model *ms_run_model(ms_ctx *cx, ms_run_store *store, const ms_run_cells *cells,
                             const ms_stack *stack, ms_run_notes *notes,
                             const char **reason);

#endif
