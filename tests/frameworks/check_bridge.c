/* NVIDIA-NeMo/Megatron-Bridge at commit 067f987d (2026-08-22, 0.7 development),
 * src/megatron/bridge/training/config.py: what it checks besides Megatron Core. */
#include "tests/frameworks/frameworks.h"

/* use_tp_pp_dp_mapping with Megatron-FSDP */
static bool wrong_order(const ms_launch *a)
{
    return a->zero >= 2 && !ms_launch_has_default_order(a);
}

const ms_framework_rule ms_bridge_rules[] = {
    {"M17 order: with FSDP pp is outermost", wrong_order},
    {0},
};
