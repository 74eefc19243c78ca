#include "costmodel/tensor/technique.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

const char *const ms_recompute_names[] = {"none", "selective", "per-op",
                                          "full", "auto",      NULL};
const char *const ms_module_names[] = {
    "core_attn",      "layernorm", "mla_up_proj", "moe_act", "mlp", "moe",
    "shared_experts", "norms",     "activations", "scores",  NULL};
const char *const ms_cp_method_names[] = {"all-gather", "ring", "ulysses", NULL};
const char *const ms_cp_balance_names[] = {"head-tail", "none", NULL};
const char *const ms_host_optimizer_names[] = {"off", "states", "update", NULL};
const char *const ms_quantized_bits_names[] = {"off", "8", "4", NULL};
const char *const ms_compile_names[] = {"stack", "none", "regional", "full", NULL};
const char *const ms_cuda_graphs_names[] = {"none", "layers", "full", NULL};

const char *const ms_dispatcher_names[] = {"stack",  "alltoall", "allgather",
                                           "deepep", "hybridep", NULL};

/* Context-parallel methods by names in Megatron-Core (cp_comm_type), PyTorch, papers. */
static const struct method_alias {
    const char *name;
    ms_cp_method method;
} method_aliases[] = {
    {"all-gather", MS_CP_ALL_GATHER},
    {"all_gather", MS_CP_ALL_GATHER},
    {"allgather", MS_CP_ALL_GATHER},
    {"kv-all-gather", MS_CP_ALL_GATHER},
    {"ring", MS_CP_RING},
    {"ring-attention", MS_CP_RING},
    {"zig-zag", MS_CP_RING},
    {"zigzag", MS_CP_RING},
    {"p2p", MS_CP_RING},
    {"ulysses", MS_CP_ULYSSES},
    {"deepspeed-ulysses", MS_CP_ULYSSES},
    {"all-to-all", MS_CP_ULYSSES},
    {"all_to_all", MS_CP_ULYSSES},
    {"a2a", MS_CP_ULYSSES},
};

bool ms_word_set_parse(const char *text,
                       unsigned (*bits_of)(const char *word, size_t length),
                       unsigned *set)
{
    unsigned all = 0;
    while (true) {
        size_t length = strcspn(text, ",");
        unsigned bits = bits_of(text, length);
        if (bits == 0)
            return false;
        all |= bits;
        if (text[length] == '\0')
            break;
        text += length + 1;
    }
    *set = all;
    return true;
}

static unsigned module_of(const char *name, size_t length)
{
    for (int i = 0; i < MS_NUM_MODULES; i++)
        if (strlen(ms_module_names[i]) == length &&
            memcmp(ms_module_names[i], name, length) == 0)
            return 1U << i;
    return 0;
}

bool ms_modules_parse(const char *text, int *modules)
{
    unsigned set;
    if (!ms_word_set_parse(text, module_of, &set))
        return false;
    *modules = (int)set;
    return true;
}

bool ms_cp_method_parse(const char *text, ms_cp_method *out)
{
    for (size_t i = 0; i < sizeof method_aliases / sizeof method_aliases[0]; i++) {
        if (strcasecmp(text, method_aliases[i].name) == 0) {
            *out = method_aliases[i].method;
            return true;
        }
    }
    return false;
}
