/* Makes the model, cluster and stack of a published run: values that its row states
 * override those of the configurations that its names mean. */
#include "costmodel/model/model.h"
#include "sim/validate/pubrun_priv.h"
#include "topo/allocation.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- the store ---- */

typedef struct stored {
    const char *key;
    const void *object; /* loaded configuration; NULL if it could not be loaded */
    struct stored *next;
} stored;

struct ms_pubrun_store {
    ms_arena *arena;
    const ms_name_tables *names;
    ms_pubrun_files files; /* stand in for every profile and stack; NULL: none */
    stored *models, *bases, *clusters, *profiles, *stacks;
};

ms_status ms_pubrun_store_open(ms_ctx *cx, ms_pubrun_store **out)
{
    *out = MS_NEW(cx->arena, ms_pubrun_store);
    (*out)->arena = cx->arena;
    return ms_name_tables_load(cx, &(*out)->names);
}

void ms_pubrun_store_use(ms_pubrun_store *store, const ms_pubrun_files *files)
{
    store->files = *files;
}

const ms_name_tables *ms_pubrun_store_names(const ms_pubrun_store *store)
{
    return store->names;
}

static const stored *find_stored(const stored *list, const char *key)
{
    for (; list != NULL; list = list->next)
        if (strcmp(list->key, key) == 0)
            return list;
    return NULL;
}

static const void *add_stored(ms_pubrun_store *store, stored **list, const char *key,
                              const void *object)
{
    stored *made = MS_NEW(store->arena, stored);
    *made = (stored){
        .key = ms_arena_strdup(store->arena, key), .object = object, .next = *list};
    *list = made;
    return object;
}

/* Finds the configuration `name` in a list of the store, or loads it without messages:
 * rows that name an unreadable one are skipped. */
#define LOAD_ONCE(type, list, loader)                                                    \
    const stored *found = find_stored(store->list, name);                                \
    if (found != NULL)                                                                   \
        return found->object;                                                            \
    ms_ctx quiet = {.arena = cx->arena};                                                 \
    const type *loaded = NULL;                                                           \
    if (loader(&quiet, name, &loaded) != MS_OK)                                          \
        loaded = NULL;                                                                   \
    return add_stored(store, &store->list, name, loaded)

const ms_cluster *ms_pubrun_store_cluster(ms_ctx *cx, ms_pubrun_store *store,
                                          const char *name)
{
    LOAD_ONCE(ms_cluster, clusters, ms_cluster_load);
}

const ms_profile *ms_pubrun_store_profile(ms_ctx *cx, ms_pubrun_store *store,
                                          const char *name)
{
    if (store->files.profile != NULL)
        name = store->files.profile;
    LOAD_ONCE(ms_profile, profiles, ms_profile_load);
}

const ms_stack *ms_pubrun_store_stack(ms_ctx *cx, ms_pubrun_store *store,
                                      const char *name)
{
    if (store->files.stack != NULL)
        name = store->files.stack;
    LOAD_ONCE(ms_stack, stacks, ms_stack_load);
}

/* ---- clusters and stacks as rows describe them ---- */

static void set_node(const ms_pubrun_cells *cells, ms_pubrun_notes *notes,
                     ms_cluster *cluster)
{
    ms_level *inner = &cluster->levels[0];
    long stated = cells->gpus_per_node;
    bool is_node =
        inner->gpus_per_domain == cluster->gpus_per_node && inner->topology != MS_TORUS;
    if (!is_node || stated < 1 || stated > 64 || stated == cluster->gpus_per_node)
        return;
    for (int i = 1; i < cluster->num_levels - 1; i++)
        cluster->levels[i].gpus_per_domain =
            cluster->levels[i].gpus_per_domain / cluster->gpus_per_node * stated;
    cluster->gpus_per_node = inner->gpus_per_domain = stated;
    for (int i = 1; i < cluster->num_levels; i++)
        cluster->levels[i].rails = cluster->levels[i].rails > 0 ? stated : 0;
    ms_pubrun_note(notes, "%ld GPUs a node", stated);
}

/* Sets the device's memory to what the table row states, as "H100 SXM5 64GB". The
 * cluster's is kept if the two differ by less than an eighth (vendors' GB, drivers' GiB),
 * or if a module of two dies is stated and the device is one die. */
static void set_memory(const ms_name_tables *names, const ms_pubrun_cells *cells,
                       ms_pubrun_notes *notes, ms_cluster *cluster)
{
    const double bytes_per_gib = 1073741824.0, usable = 0.985;
    double stated = ms_pubrun_stated_gib(names, cells) * bytes_per_gib;
    double ratio = stated / cluster->device.memory_bytes;
    bool is_module = strstr(cluster->device.name, "die") != NULL && ratio > 1.5;
    if (stated <= 0.0 || fabs(ratio - 1.0) < 0.125 || is_module)
        return;
    cluster->device.memory_bytes = usable * stated;
    ms_pubrun_note(notes, "%g GB of memory, the rest as %s", stated / bytes_per_gib,
                   cluster->device.name);
}

/* Sets the rack's size where the table row names one of fewer GPUs than the
 * configuration's: "GB200 NVL36", "GB200 NVL4". */
static void set_rack(const ms_name_tables *names, const ms_pubrun_cells *cells,
                     ms_pubrun_notes *notes, ms_cluster *cluster)
{
    const char *device = ms_plain_text(notes->arena, cells->gpu_type);
    const ms_rack_name *racks = names->racks.rows;
    ms_level *inner = &cluster->levels[0];
    bool is_rack =
        inner->gpus_per_domain > cluster->gpus_per_node && inner->topology == MS_SWITCH;
    for (int i = 0; is_rack && i < names->racks.num_rows; i++) {
        if (strstr(device, racks[i].name) == NULL)
            continue;
        if (racks[i].gpus != inner->gpus_per_domain)
            ms_pubrun_note(notes, "%ld GPUs a rack", racks[i].gpus);
        inner->gpus_per_domain = racks[i].gpus;
        return;
    }
}

static void set_network(const ms_name_tables *names, const ms_pubrun_cells *cells,
                        const ms_profile *profile, ms_pubrun_notes *notes,
                        ms_cluster *cluster)
{
    ms_pubrun_network stated = ms_pubrun_network_of(names, cells, cluster);
    if (stated.name != NULL && strcmp(stated.name, cluster->network) != 0 &&
        ms_profile_network(profile, stated.name) != NULL) {
        cluster->network = stated.name;
        ms_pubrun_note(notes, "network %s", stated.name);
    }
    if (stated.instead_of != NULL)
        ms_pubrun_note(notes, "%s priced as %s", stated.instead_of, cluster->network);
    double own = cluster->levels[1].bandwidth_bytes_per_s;
    if (isnan(stated.bytes_per_s_per_gpu) ||
        fabs(stated.bytes_per_s_per_gpu - own) <= 0.01 * own)
        return;
    for (int i = 1; i < cluster->num_levels; i++)
        cluster->levels[i].bandwidth_bytes_per_s = stated.bytes_per_s_per_gpu;
    ms_pubrun_note(notes, "network of %g GB/s a GPU", stated.bytes_per_s_per_gpu / 1e9);
}

static void note_unknown_network(const ms_name_tables *names,
                                 const ms_pubrun_cells *cells, const ms_cluster *cluster,
                                 ms_pubrun_notes *notes)
{
    if (cells->network == NULL || cells->gpus <= cluster->levels[0].gpus_per_domain)
        return;
    ms_pubrun_network stated = ms_pubrun_network_of(names, cells, cluster);
    if (stated.name == NULL && isnan(stated.bytes_per_s_per_gpu))
        ms_pubrun_note(notes, "the cluster's network, as \"%s\" names none that is known",
                       cells->network);
}

static void set_share(long gpus, ms_pubrun_notes *notes, ms_cluster *cluster)
{
    long whole = cluster->levels[0].gpus_per_domain;
    long share = ms_even_share(cluster, gpus);
    if (share == whole)
        return;
    cluster->levels[0].gpus_per_domain = share;
    cluster->levels[0].whole_gpus = whole;
    ms_pubrun_note(notes, "%ld of %ld GPUs in a domain", share, whole);
}

const ms_cluster *ms_pubrun_store_cluster_of(ms_pubrun_store *store,
                                             const ms_cluster *cluster,
                                             const ms_profile *profile,
                                             const ms_pubrun_cells *cells,
                                             ms_pubrun_notes *notes)
{
    note_unknown_network(store->names, cells, cluster, notes);
    const char *before = notes->text;
    ms_cluster described = *cluster;
    set_memory(store->names, cells, notes, &described);
    set_node(cells, notes, &described);
    set_rack(store->names, cells, notes, &described);
    if (cluster->num_levels > 1)
        set_network(store->names, cells, profile, notes, &described);
    set_share(cells->gpus, notes, &described);
    if (notes->text == before)
        return cluster;
    const ms_level *inner = &described.levels[0], *outer = &described.levels[1];
    const char *key = ms_arena_printf(store->arena, "%s/%ld/%ld/%s/%g/%g", cluster->name,
                                      described.gpus_per_node, inner->gpus_per_domain,
                                      described.network, outer->bandwidth_bytes_per_s,
                                      described.device.memory_bytes);
    const stored *found = find_stored(store->clusters, key);
    if (found != NULL)
        return found->object;
    ms_cluster *made = MS_NEW(store->arena, ms_cluster);
    *made = described;
    return add_stored(store, &store->clusters, key, made);
}

const ms_stack *ms_pubrun_store_variant(ms_pubrun_store *store, const ms_stack *of,
                                        const char *change, const ms_stack *changed)
{
    const char *key =
        ms_arena_printf(store->arena, "%s/%p/%s", of->name, (const void *)of, change);
    const stored *found = find_stored(store->stacks, key);
    if (found != NULL)
        return found->object;
    ms_stack *made = MS_NEW(store->arena, ms_stack);
    *made = *changed;
    return add_stored(store, &store->stacks, key, made);
}

const ms_stack *ms_pubrun_store_attention(ms_pubrun_store *store, const ms_stack *stack,
                                          bool flash, bool newer)
{
    if (flash == (stack->attention != MS_ATTENTION_UNFUSED) && !(flash && newer))
        return stack;
    ms_stack changed = *stack;
    changed.attention = !flash  ? MS_ATTENTION_UNFUSED
                        : newer ? MS_ATTENTION_FA3
                                : MS_ATTENTION_FA2;
    return ms_pubrun_store_variant(
        store, stack, ms_attention_kernel_names[changed.attention], &changed);
}

/* Model that supplies shapes which the table row does not state; NULL if the known model
 * names none, or it cannot be loaded. */
static const ms_model *load_base(ms_ctx *cx, ms_pubrun_store *store,
                                 const ms_known_model *known)
{
    const char *name = known->model != NULL ? known->model : known->like;
    if (name == NULL)
        return NULL;
    LOAD_ONCE(ms_model, bases, ms_model_load);
}

void ms_pubrun_note(ms_pubrun_notes *notes, const char *format, ...)
{
    char text[160];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    notes->text = notes->text == NULL
                      ? ms_arena_strdup(notes->arena, text)
                      : ms_arena_printf(notes->arena, "%s, %s", notes->text, text);
}

/* ---- shapes ---- */

/* Returns NULL, or which shape is stated neither by the table row's columns nor by the
 * known model or kind of model. */
static const char *model_gap(const ms_pubrun_cells *cells, const ms_known_model *known)
{
    if (known->model != NULL)
        return NULL;
    const char *refusal = ms_known_model_refusal(known);
    if (cells->layers <= 0 || cells->hidden <= 0 || cells->heads <= 0)
        return refusal != NULL ? refusal : "incomplete: architecture";
    if (refusal != NULL)
        return NULL;
    bool has_mlp = cells->ffn_hidden > 0 ||
                   (cells->experts > 0 && cells->moe_ffn_hidden > 0) ||
                   (known->four_hidden && cells->experts <= 0);
    if (!has_mlp)
        return "incomplete: width of the MLP";
    if (cells->experts > 0 && cells->top_k <= 0)
        return "incomplete: experts of a token";
    if (cells->vocab <= 0 && known->vocab == 0)
        return "incomplete: vocabulary";
    return NULL;
}

/* Whether the columns state another width or other heads than the model that the table
 * row's name means: the run then trained a scaled or distilled model named after it. */
static bool differs_from_base(const ms_pubrun_cells *cells, const ms_model *base)
{
    return (cells->hidden > 0 && cells->hidden != base->hidden) ||
           (cells->heads > 0 && cells->heads != base->num_heads);
}

static const ms_known_model *known_model(ms_ctx *cx, ms_pubrun_store *store,
                                         const ms_pubrun_cells *cells)
{
    bool gated = cells->gated_ffn != 0;
    const ms_known_model *known = ms_known_model_find(store->names, cells->model, gated);
    const ms_model *base = known->model != NULL ? load_base(cx, store, known) : NULL;
    if (base == NULL || !differs_from_base(cells, base))
        return known;
    const ms_known_model *kind = ms_known_kind_find(store->names, cells->model, gated);
    return model_gap(cells, kind) == NULL && kind->unsupported == MS_SUPPORTED ? kind
                                                                               : known;
}

const char *ms_pubrun_model_gap(ms_ctx *cx, ms_pubrun_store *store,
                                const ms_pubrun_cells *cells)
{
    return model_gap(cells, known_model(cx, store, cells));
}

/* Finds the next model size in a text, as "8B" or "70b" but neither "A17B" nor "8x7B",
 * and sets *billions to it. Returns the text behind it; NULL if there is none. */
static const char *after_size(const char *text, const char *at, double *billions)
{
    for (; *at != '\0'; at++) {
        bool starts = isdigit((unsigned char)*at) &&
                      (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '.'));
        if (!starts)
            continue;
        char *end = NULL;
        *billions = strtod(at, &end);
        const char *behind = end + strspn(end, " ");
        bool is_size = (*behind == 'B' || *behind == 'b') &&
                       !isalnum((unsigned char)behind[1]) &&
                       strncmp(behind + 1, " tok", 4) != 0;
        if (is_size)
            return behind + 1;
        at = end > at ? end - 1 : at;
    }
    return NULL;
}

/* Whether the name joins sizes of several models, "8B / 70B", and columns do not
 * determine which one ran. The name of a mixture of experts may have two, "671B / 37B",
 * the second of which counts the parameters that a token uses. */
static bool mixes_sizes(const ms_pubrun_cells *cells, const ms_model *base)
{
    const char *text = cells->model;
    if (text == NULL || (cells->layers > 0 && cells->hidden > 0))
        return false;
    bool is_mixture = cells->experts > 0 || (base != NULL && base->moe.num_experts > 0);
    double size = 0.0, other = 0.0;
    const char *end = after_size(text, text, &size), *next = NULL;
    while (end != NULL && (next = after_size(text, end, &other)) != NULL) {
        size_t length = (size_t)(next - end);
        bool is_joined = memchr(end, '/', length) != NULL ||
                         memchr(end, '&', length) != NULL ||
                         memchr(end, ',', length) != NULL ||
                         strncmp(end, " or ", 4) == 0 || strncmp(end, " and ", 5) == 0;
        if (is_joined && other != size && !(is_mixture && other < size))
            return true;
        end = next;
        size = other;
    }
    return false;
}

const char *ms_pubrun_model_unsupported(ms_ctx *cx, ms_pubrun_store *store,
                                        const ms_pubrun_cells *cells)
{
    const ms_known_model *known = known_model(cx, store, cells);
    const ms_model *base = known->model != NULL ? load_base(cx, store, known) : NULL;
    if (known->unsupported == MS_SUPPORTED && mixes_sizes(cells, base))
        return ms_arena_printf(cx->arena, "model: several sizes in \"%s\"",
                               ms_cell_text(cx->arena, cells->model));
    return ms_known_model_refusal(known);
}

/* Replaces *value by the value that the table row states, if any (> 0). */
static void take_stated(long *value, long stated)
{
    if (stated > 0)
        *value = stated;
}

static void take_heads(const ms_pubrun_cells *cells, const ms_known_model *known,
                       ms_pubrun_notes *notes, ms_model *model)
{
    bool is_mla = model->attention == MS_ATTENTION_MLA;
    take_stated(&model->num_heads, cells->heads);
    take_stated(&model->num_kv_heads, is_mla ? cells->heads : cells->kv_heads);
    if (known->model == NULL && cells->kv_heads <= 0) {
        model->num_kv_heads = model->num_heads;
        ms_pubrun_note(notes, "kv heads as many as heads");
    }
    if (is_mla)
        return;
    take_stated(&model->head_dim, cells->head_dim);
    if (known->model == NULL && cells->head_dim <= 0)
        model->head_dim = model->hidden / model->num_heads;
    model->value_head_dim = model->head_dim;
    if (cells->tp > 0 && ms_model_split_kv_heads(model, cells->tp) > model->num_kv_heads)
        ms_pubrun_note(notes, "kv heads copied to %ld", cells->tp);
}

/* Takes the experts that the table row states, else the known model's. None if the row
 * states 0, or if it states nothing and only the kind of model is known. */
static void take_experts(const ms_pubrun_cells *cells, const ms_known_model *known,
                         ms_pubrun_notes *notes, ms_model *model)
{
    if (cells->experts == 0 || (cells->experts < 0 && known->model == NULL)) {
        model->moe.num_experts = 0;
        return;
    }
    if (cells->experts > 0 && cells->moe_ffn_hidden <= 0 && known->model == NULL) {
        model->moe.ffn_hidden = cells->ffn_hidden;
        ms_pubrun_note(notes, "experts as wide as the MLP, %ld", model->moe.ffn_hidden);
    }
    take_stated(&model->moe.num_experts, cells->experts);
    take_stated(&model->moe.top_k, cells->top_k);
    take_stated(&model->moe.ffn_hidden, cells->moe_ffn_hidden);
    if (cells->shared_experts >= 0 && model->moe.num_experts > 0)
        model->moe.shared_ffn_hidden = cells->shared_experts * model->moe.ffn_hidden;
}

/* Takes the vocabulary. Stacks of Megatron's family pad it until every tensor-parallel
 * rank has a multiple of 128 rows. */
static void take_vocab(const ms_pubrun_cells *cells, const ms_known_model *known,
                       const ms_stack *stack, ms_pubrun_notes *notes, ms_model *model)
{
    take_stated(&model->vocab, known->vocab);
    take_stated(&model->vocab, cells->vocab);
    bool assumed = cells->vocab <= 0;
    long tp = cells->tp > 0 ? cells->tp : 1, unit = 128 * tp;
    if (stack->pads_vocab && (assumed || model->vocab % tp != 0))
        model->vocab = (model->vocab + unit - 1) / unit * unit;
    if (assumed || model->vocab != cells->vocab)
        ms_pubrun_note(notes, "vocabulary %ld", model->vocab);
}

static void take_tied(const ms_pubrun_cells *cells, const ms_known_model *known,
                      ms_pubrun_notes *notes, ms_model *model)
{
    if (cells->tied_embeddings >= 0) {
        model->tied_embeddings = cells->tied_embeddings > 0;
    } else {
        if (known->model == NULL && model->activation == MS_ACT_SWIGLU)
            model->tied_embeddings = false;
        ms_pubrun_note(notes, "embeddings %s",
                       model->tied_embeddings ? "tied" : "not tied");
    }
    if (model->tied_embeddings)
        model->head_bias = false;
}

/* Sets the router of Llama 4. Source: huggingface.co/meta-llama/Llama-4-Maverick-17B-128E
 * config.json. */
static void apply_style(int style, ms_model *model)
{
    if (style != MS_STYLE_LLAMA4)
        return;
    model->moe.router = MS_ROUTER_SIGMOID;
    model->moe.norm_topk = false;
}

static ms_layer_kind layer_of(const ms_model *base, int style, const ms_model *model,
                              long i)
{
    if (style == MS_STYLE_LLAMA4)
        return (ms_layer_kind){.moe = i % 2 == 1 && model->moe.num_experts > 0,
                               .window_tokens = i % 4 == 3 ? 0 : 8192};
    long like = i < base->num_layers ? i : base->num_layers - 1;
    ms_layer_kind kind = base->kinds[base->kind_of_layer[like]];
    if (ms_model_is_hybrid(base)) /* the pattern of a hybrid's layers repeats */
        return base->kinds[base->kind_of_layer[i % base->num_layers]];
    if (model->moe.num_experts == 0)
        kind.moe = false;
    else if (base->moe.num_experts == 0)
        kind.moe = true;
    return kind;
}

/* dense_layers: first layers of a mixture that have no experts; -1: as in `base`. */
static void set_layers(ms_ctx *cx, const ms_model *base, int style, long dense_layers,
                       ms_model *model)
{
    model->num_kinds = 0;
    model->kind_of_layer = MS_NEW_ARRAY(cx->arena, model->num_layers, unsigned char);
    for (long i = 0; i < model->num_layers; i++) {
        ms_layer_kind kind = layer_of(base, style, model, i);
        if (dense_layers >= 0 && model->moe.num_experts > 0 && !ms_model_is_hybrid(base))
            kind.moe = i >= dense_layers;
        int at = 0;
        while (at < model->num_kinds && !ms_layer_kind_equal(&model->kinds[at], &kind))
            at++;
        model->kinds[at] = kind;
        model->num_kinds += at == model->num_kinds;
        model->kind_of_layer[i] = (unsigned char)at;
    }
}

static void take_activation(const ms_pubrun_cells *cells, ms_model *model)
{
    bool gated = model->activation == MS_ACT_SWIGLU || model->activation == MS_ACT_GEGLU;
    if (cells->gated_ffn > 0 && !gated)
        model->activation = MS_ACT_SWIGLU;
    if (cells->gated_ffn == 0 && gated)
        model->activation = MS_ACT_GELU;
}

static const char *key_of(ms_arena *arena, const ms_known_model *known, long dense_layers,
                          const ms_model *m)
{
    return ms_arena_printf(
        arena, "%s %s %ld %ld %ld %ld %ld %ld %ld %ld %d %d %d %d %ld %ld %ld %ld %ld",
        known->name, known->like != NULL ? known->like : "", dense_layers, m->num_layers,
        m->hidden, m->num_heads, m->num_kv_heads, m->head_dim, m->ffn_hidden, m->vocab,
        m->tied_embeddings, m->dropout, m->qk_norm, (int)m->activation,
        m->moe.num_experts, m->moe.top_k, m->moe.ffn_hidden, m->moe.shared_ffn_hidden,
        m->max_positions);
}

static void fill_model(const ms_pubrun_cells *cells, const ms_known_model *known,
                       const ms_stack *stack, ms_pubrun_notes *notes, ms_model *model)
{
    take_stated(&model->num_layers, cells->layers);
    take_stated(&model->hidden, cells->hidden);
    take_heads(cells, known, notes, model);
    take_stated(&model->ffn_hidden, cells->ffn_hidden);
    take_activation(cells, model);
    model->qk_norm = model->qk_norm || cells->qk_norm;
    if (known->four_hidden && cells->ffn_hidden <= 0) {
        model->ffn_hidden = 4 * model->hidden;
        ms_pubrun_note(notes, "MLP of 4 hidden sizes");
    }
    take_experts(cells, known, notes, model);
    take_vocab(cells, known, stack, notes, model);
    take_tied(cells, known, notes, model);
    take_stated(&model->max_positions,
                cells->seq > model->max_positions ? cells->seq : 0);
    if (model->norm == MS_NORM_LAYER && model->position == MS_POSITION_LEARNED)
        model->dropout = stack->uses_dropout;
}

const ms_model *ms_pubrun_model(ms_ctx *cx, ms_pubrun_store *store,
                                const ms_pubrun_cells *cells, const ms_stack *stack,
                                ms_pubrun_notes *notes, const char **reason)
{
    const ms_known_model *known = known_model(cx, store, cells);
    const ms_model *base = load_base(cx, store, known);
    *reason = "model: no configuration for it";
    if (base == NULL)
        return NULL;
    ms_model model = *base;
    apply_style(known->style, &model);
    fill_model(cells, known, stack, notes, &model);
    model.name = cells->model;
    model.source = cells->source;
    const char *key = key_of(cx->arena, known, cells->dense_layers, &model);
    const stored *found = find_stored(store->models, key);
    *reason = "model: its shapes do not fit together";
    if (found != NULL)
        return found->object;
    ms_ctx quiet = {.arena = cx->arena};
    bool sane = model.num_layers <= 10000;
    if (sane)
        set_layers(cx, base, known->style, cells->dense_layers, &model);
    const ms_model *made = NULL;
    if (sane && ms_model_check(&quiet, &model, MS_NOWHERE) == MS_OK) {
        ms_model *copy = MS_NEW(cx->arena, ms_model);
        *copy = model;
        made = copy;
    }
    return add_stored(store, &store->models, key, made);
}
