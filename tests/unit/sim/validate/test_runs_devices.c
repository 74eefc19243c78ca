/* Names of devices (GPUs and others) in published runs. */
#include "tests/unit/run_rows.h"

static const struct {
    const char *device, *cluster, *precision;
} known[] = {
    {"A100-SXM4-40GB", "hgx-a100-40g", "bf16"},
    {"NVIDIA A100 80GB", "hgx-a100-80g", "fp16"},
    {"A100 PCIe", "a100-pcie-80g", "bf16"},
    {"A800", "hgx-a800-80g", "bf16"},
    {"H800 SXM", "hgx-h800", "fp8"},
    {"H20", "hgx-h20", "bf16"},
    {"H200", "hgx-h200", "FP8 (E4M3)"},
    {"H100 PCIe", "h100-pcie", "bf16"},
    {"H100x8", "hgx-h100", "bf16"},
    {"GH200", "gh200", "bf16"},
    {"B200", "hgx-b200", "nvfp4"},
    {"MI250X", "mi250x", "bf16"},
    {"MI325X", "mi325x", "bf16"},
    {"AMD Instinct MI355X", "mi355x", "mxfp8"},
    {"V100", "hgx-v100", "fp16"},
    {"V100", "hgx-v100", ""},
    {"L40S", "pcie-l40s", "bf16-mixed"},
    {"RTX PRO 6000 Blackwell", "pcie-rtx-pro-6000", "bf16"},
    {"RTX 4090", "pcie-rtx4090", "bf16"},
    {"TPU v4", "tpu-v4", "bf16"},
    {"TPU v5e", "tpu-v5e", "bfloat16"},
    {"TPU v6e (Trillium)", "tpu-v6e", "bf16"},
    {"v5p-512", "tpu-v5p", "bf16"},
    {"v6e-256", "tpu-v6e", "bf16"},
    {"8xH100 SXM5", "hgx-h100", "bf16"},
    {"H100s", "hgx-h100", "bf16"},
    {"NVIDIA H100 NVL", "h100-nvl", "bf16"},
    {"H100 94GB", "h100-nvl", "bf16"},
    {"H200 NVL", "h200-nvl", "bf16"},
    {"H100 80GB (NVLink)", "hgx-h100", "bf16"},
    {"H800 PCIe", "h800-pcie", "bf16"},
    {"A800-PCIE-80GB", "a800-pcie", "bf16"},
    {"A100-PCIE-40GB", "a100-pcie-40g", "bf16"},
    {"H20-3e", "h20-141g", "bf16"},
    {"DGX A100 640GB", "hgx-a100-80g", "bf16"},
    {"8x A100 (320GB)", "hgx-a100-40g", "bf16"},
    {"4 x A100 160 GB", "hgx-a100-40g", "bf16"},
    {"8xA100 80GB (640GB)", "hgx-a100-80g", "bf16"},
    {"DGX A100 320GB", "hgx-a100-40g", "bf16"},
    {"AWS p4de", "a100-80g-efa", "bf16"},
    {"p5.48xlarge", "h100-efa", "bf16"},
    {"a3-megagpu-8g", "h100-tcpxo", "bf16"},
    {"GH200 480GB", "gh200", "bf16"},
    {"GH200 144GB HBM3e", "gh200-144g", "bf16"},
    {"GB300NVL72", "gb300-nvl72", "bf16"},
    {"Tesla V100-SXM2-16GB", "hgx-v100", "fp16"},
    {"V100 PCIe", "v100-pcie", "fp16"},
    {"DGX-2", "dgx-2", "mixed precision"},
    {"L40", "pcie-l40", "bf16"},
    {"L4", "pcie-l4", "bf16"},
    {"A10G", "pcie-a10g", "bf16"},
    {"A40", "pcie-a40", "bf16"},
    {"NVIDIA RTX A6000", "pcie-rtx-a6000", "bf16"},
    {"RTX 6000 Ada Generation", "pcie-rtx-6000-ada", "bf16"},
    {"RTX 3090", "pcie-rtx3090", "bf16"},
    {"GeForce RTX 5090", "pcie-rtx5090", "bf16"},
    {"MI250", "mi250", "bf16"},
    {"MI210", "mi210", "bf16"},
    {"MI300A", "mi300a", "bf16"},
    {"MI350X", "mi350x", "bf16"},
    {"Intel Gaudi2", "gaudi2", "bf16"},
    {"HPU Gaudi 3", "gaudi3", "bf16"},
    {"trn1.32xlarge", "trn1", "bf16"},
    {"Trainium2", "trn2", "bf16"},
    {"TPU v3-1024", "tpu-v3", "bf16"},
    {"TPU v5litepod-256", "tpu-v5e", "bf16"},
    {"TPU v7 (Ironwood)", "tpu-v7", "bf16"},
    {"Ascend 910B", "ascend-910b", "bf16"},
};

static void devices_are_known_whatever_their_spelling(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const ms_pubrun run = device_row(cx, known[i].device, "", known[i].precision);
        ASSERT_TEXT(run.reason, NULL);
        ASSERT_TEXT(run.plan.cluster, known[i].cluster);
    }
    ASSERT_TEXT(device_row(cx, "V100", "", "fp8").reason,
                "precision: the device has no coefficients for it");
}

/* Names that only resemble a known device, or that mean one of two, are unknown. */
static void devices_are_not_guessed(void **state)
{
    (void)state;
    static const char *const unknown[] = {
        "Groq",    "A100X", "H1000",     "BI-V100",         "RTX 4090 D",
        "TPU v4i", "B100",  "Blackwell", "RTX 5090 Laptop", "H100 MIG 1g.10gb",
        "H100 CNX"};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        ASSERT_TEXT(device_row(cx, unknown[i], "", "bf16").reason,
                    ms_arena_printf(cx->arena, "device: no configuration for \"%s\"",
                                    unknown[i]));
    static const char *const mixed[] = {"H100 / A100", "H100 or A100", "A100 vs H100",
                                        "H100 and Gaudi2"};
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++)
        ASSERT_TEXT(
            device_row(cx, mixed[i], "", "bf16").reason,
            ms_arena_printf(cx->arena, "device: several kinds in \"%s\"", mixed[i]));
    static const char *const sizes[] = {"A100 40/80GB", "A100 40GB / 80GB",
                                        "A100 40 GB or 80 GB"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        ASSERT_TEXT(
            device_row(cx, sizes[i], "", "bf16").reason,
            ms_arena_printf(cx->arena, "device: several memories in \"%s\"", sizes[i]));
}

/* A device with another memory size than its configuration gets the stated size; a
 * number that is not a memory size is ignored. */
static void stated_memory_is_that_of_the_device(void **state)
{
    (void)state;
    static const struct {
        /* note among the run's defaults; NULL: memory as configured */
        const char *device, *note;
    } stated[] = {
        {"H100 SXM5 64GB", "64 GB of memory, the rest as H100 SXM5 80GB"},
        {"A800 40GB", "40 GB of memory, the rest as A800 SXM4 80GB"},
        {"GB200 NVL36", "36 GPUs a rack"},
        {"B200 192GB", NULL},
        {"a3-highgpu-8g", NULL},
        {"H100 80GB (8 x 400 Gb/s)", NULL},
        {"MI250X 128GB", NULL},
        {"GB200 NVL36x2", NULL},
        /* the stated memory is of all counted devices together */
        {"8x H100 (640GB)", NULL},
        {"H100 x 2 (160GB)", NULL},
        {"H200 1128GB", NULL},
        {"8x H100 64GB", "64 GB of memory, the rest as H100 SXM5 80GB"},
        {"4x H100 (256GB)", "64 GB of memory, the rest as H100 SXM5 80GB"},
    };
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof stated / sizeof *stated; i++) {
        const char *defaults = device_row(cx, stated[i].device, "", "bf16").defaults;
        bool is_noted = defaults != NULL && (strstr(defaults, "of memory") != NULL ||
                                             strstr(defaults, "a rack") != NULL);
        ASSERT_INT(is_noted, stated[i].note != NULL);
        if (stated[i].note != NULL)
            assert_non_null(strstr(defaults, stated[i].note));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_known_whatever_their_spelling),
        cmocka_unit_test(devices_are_not_guessed),
        cmocka_unit_test(stated_memory_is_that_of_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
