/* Adapters (LoRA) of linear layers, laid over tp as in Megatron Bridge and NeMo
 * (ParallelLinearAdapter): beside a matrix split by columns A is split by its rank, B by
 * columns; beside one split by rows A is split by rows, B by columns, the result of which
 * is moved to where the layer's own result is. A matrix that tp does not split has whole A
 * and B. From memory. */
#include "costmodel/program/program_priv.h"

#include <string.h>

/* Linear layers by the names of their nodes, which einsums of A and B follow. */
typedef struct adapter {
    const char *layer;
    ms_lora_target target;
    const char *a, *b, *sum; /* names of the adapter's nodes */
    const char *into, *out;  /* einsums of A and B */
    int group;               /* index into ms_builder.adapter_input; -1: none */
} adapter;

#define ADAPTER(layer, target, into, out, group)                                         \
    {                                                                                    \
        layer, target, layer ".lora_a", layer ".lora_b", layer ".lora_sum", into, out,   \
            group                                                                        \
    }

static const adapter adapters[] = {
    ADAPTER("attention.query", MS_LORA_QUERY, "bsh,hR->bsR", "bsR,Rnd->bsnd", 0),
    ADAPTER("attention.key", MS_LORA_KEY, "bsh,hR->bsR", "bsR,Rgd->bsgd", 0),
    ADAPTER("attention.value", MS_LORA_VALUE, "bsh,hR->bsR", "bsR,Rgw->bsgw", 0),
    ADAPTER("attention.query_down", MS_LORA_QUERY, "bsh,hR->bsR", "bsR,Rq->bsq", -1),
    ADAPTER("attention.query_up", MS_LORA_QUERY, "bsq,qR->bsR", "bsR,Rnd->bsnd", -1),
    ADAPTER("attention.kv_down", MS_LORA_KEY, "bsh,hR->bsR", "bsR,Rc->bsc", -1),
    ADAPTER("attention.key_rope", MS_LORA_KEY, "bsh,hR->bsR", "bsR,Ro->bso", -1),
    ADAPTER("attention.kv_up", MS_LORA_VALUE, "bsc,cR->bsR", "bsR,Rnu->bsnu", -1),
    ADAPTER("attention.output", MS_LORA_OUTPUT, "bsnw,nwR->bsR", "bsR,Rh->bsh", -1),
    ADAPTER("mlp.gate", MS_LORA_GATE, "bsh,hR->bsR", "bsR,Rf->bsf", 1),
    ADAPTER("mlp.up", MS_LORA_UP, "bsh,hR->bsR", "bsR,Rf->bsf", 1),
    ADAPTER("mlp.down", MS_LORA_DOWN, "bsf,fR->bsR", "bsR,Rh->bsh", -1),
};

static const adapter *adapter_of(const ms_builder *b, const char *layer)
{
    const ms_lora *lora = &b->program->key.lora;
    for (size_t i = 0; lora->rank > 0 && i < sizeof adapters / sizeof *adapters; i++)
        if ((lora->targets & adapters[i].target) != 0 &&
            strcmp(adapters[i].layer, layer) == 0)
            return &adapters[i];
    return NULL;
}

/* A copy of the dims of an einsum's weight. */
static const char *weight_dims(const char *einsum, char dims[MS_MAX_DIMS + 1])
{
    const char *weight = strchr(einsum, ',') + 1;
    size_t length = strcspn(weight, "-");
    memcpy(dims, weight, length);
    dims[length] = '\0';
    return dims;
}

/* The letter that splits A over tp: that of a layer split by rows, else the rank. */
static char letter_of_a(const char *dims, char tp_letter)
{
    if (tp_letter == 0)
        return 0;
    return strchr(dims, tp_letter) != NULL ? tp_letter : MS_DIM_LORA;
}

/* The letter that splits B over tp: that of a layer split by columns, else the width of
 * its result, if tp divides it. */
static char letter_of_b(const ms_builder *b, const char *dims, char tp_letter)
{
    if (tp_letter == 0 || strchr(dims, tp_letter) != NULL)
        return tp_letter;
    long width = (long)b->program->size[dims[1] - '0'];
    return width % b->program->key.tp == 0 ? dims[1] : 0;
}

static int into_rank(ms_builder *b, const adapter *which, int x, char tp_letter)
{
    bool shared = b->program->key.lora_joined && which->group >= 0;
    if (shared && b->adapter_input[which->group] >= 0)
        return b->adapter_input[which->group];
    char dims[MS_MAX_DIMS + 1];
    weight_dims(which->into, dims);
    int a = ms_add_weight(b, which->a, dims, letter_of_a(dims, tp_letter));
    int low = ms_emit_product(b, which->a, which->into, x, a);
    if (shared)
        b->adapter_input[which->group] = low;
    return low;
}

int ms_add_adapter(ms_builder *b, const char *name, int x, int base, char tp_letter)
{
    const adapter *which = adapter_of(b, name);
    if (which == NULL)
        return base;
    char dims[MS_MAX_DIMS + 1];
    weight_dims(which->out, dims);
    int low = into_rank(b, which, x, tp_letter);
    int weight = ms_add_weight(b, which->b, dims, letter_of_b(b, dims, tp_letter));
    int high = ms_emit_product(b, which->b, which->out, low, weight);
    return ms_emit_add(b, which->sum, base, high);
}
