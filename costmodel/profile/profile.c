/* Reads cost profiles: each coefficient has a value, a provenance and a source. A missing
 * coefficient is an error unless its help text states a default. */
#include "costmodel/profile/profile_priv.h"

#include "base/paths.h"
#include "costmodel/tensor/op.h"

#include <math.h>
#include <string.h>

const char *const ms_provenance_names[] = {"spec", "measured", "fitted", "assumed", NULL};
const char *const ms_attention_kernel_names[] = {"unfused", "triton", "fa2",
                                                 "cudnn",   "fa3",    NULL};

typedef struct coefficient_text {
    int from;
    const char *source;
} coefficient_text;

static const ms_field coefficient_fields[] = {
    {.kind = MS_FIELD_ANY,
     .key = "value",
     .required = true,
     .help = "number or quantity"},
    {.kind = MS_FIELD_CHOICE,
     .key = "from",
     .offset = offsetof(coefficient_text, from),
     .required = true,
     .choices = ms_provenance_names,
     .help = "how the value was obtained"},
    {.kind = MS_FIELD_TEXT,
     .key = "source",
     .offset = offsetof(coefficient_text, source),
     .required = true,
     .help = "public origin, and what was fitted or assumed"},
    {0}};

static ms_status read_value(ms_ctx *cx, ms_jval value, const ms_field *field, double *out)
{
    if (ms_json_is_null(value) && field->nullable) {
        *out = NAN;
        return MS_OK;
    }
    if (field->unit == MS_UNIT_COUNT)
        return ms_json_number(cx, value, field->low, field->high, out);
    MS_TRY(ms_json_quantity(cx, value, field->unit, out));
    if (*out < field->low || *out > field->high)
        return ms_json_fail(cx, value,
                            "%s is %g in base units, must be between %g and %g",
                            field->key, *out, field->low, field->high);
    return MS_OK;
}

static ms_status read_coefficient(ms_ctx *cx, ms_jval object, const ms_field *field,
                                  ms_coefficient *out)
{
    coefficient_text text = {0};
    if (!ms_json_is_object(object)) {
        ms_json_fail(cx, object, "\"%s\" must be an object with value, from and source",
                     field->key);
        ms_hint(cx, "write {\"value\": ..., \"from\": \"assumed\", \"source\": \"...\"}");
        return MS_EINPUT;
    }
    MS_TRY(ms_json_read(cx, object, coefficient_fields, &text));
    ms_jval value = object;
    ms_json_member(cx, object, "value", &value);
    MS_TRY(read_value(cx, value, field, &out->value));
    out->from = (ms_provenance)text.from;
    out->source = text.source;
    return MS_OK;
}

ms_status ms_coefficients_read(ms_ctx *cx, ms_jval object, const ms_field *fields,
                               void *out)
{
    ms_status status = ms_json_read(cx, object, fields, out);
    if (!ms_json_is_object(object))
        return status;
    for (const ms_field *field = fields; field->kind != MS_FIELD_END; field++) {
        ms_jval value;
        if (field->kind != MS_FIELD_ANY || field->low >= field->high ||
            !ms_json_member(cx, object, field->key, &value))
            continue;
        ms_coefficient *to = (ms_coefficient *)(void *)((char *)out + field->offset);
        if (read_coefficient(cx, value, field, to) != MS_OK)
            status = MS_EINPUT;
    }
    return status;
}

#define ROW(at, keyword, must, null, quantity, least, most, text)                        \
    {                                                                                    \
        .kind = MS_FIELD_ANY, .key = (keyword), .offset = (at), .required = (must),      \
        .nullable = (null), .low = (least), .high = (most), .unit = (quantity),          \
        .help = (text)                                                                   \
    }
#define PART(keyword, text) ROW(0, keyword, true, false, MS_UNIT_COUNT, 0, 0, text)
#define COEFFICIENT(type, member, keyword, quantity, least, most, text)                  \
    ROW(offsetof(type, member), keyword, true, false, quantity, least, most, text)
#define NULLABLE(type, member, keyword, quantity, least, most, text)                     \
    ROW(offsetof(type, member), keyword, true, true, quantity, least, most, text)
#define OPTIONAL(type, member, keyword, quantity, most, text)                            \
    ROW(offsetof(type, member), keyword, false, false, quantity, 0, most, text)
#define FRACTION(type, member, keyword, text)                                            \
    COEFFICIENT(type, member, keyword, MS_UNIT_COUNT, 0.01, 1, text)
/* Field of a measured rate / listed rate, which exceeds 1 where CPU caches help; above 1
 * in calibrated profiles only (ms_profile_check_shares). */
#define RATE_FRACTION(type, member, keyword, text)                                       \
    COEFFICIENT(type, member, keyword, MS_UNIT_COUNT, MS_LEAST_RATE_FRAC,                \
                MS_MOST_RATE_FRAC, text)
#define SECONDS(type, member, keyword, text)                                             \
    COEFFICIENT(type, member, keyword, MS_UNIT_SECONDS, 0.0, 10.0, text)

const ms_field ms_profile_fields[] = {
    {.kind = MS_FIELD_TEXT,
     .key = "name",
     .offset = offsetof(ms_profile, name),
     .required = true,
     .help = "name of the profile"},
    {.kind = MS_FIELD_TEXT,
     .key = "source",
     .offset = offsetof(ms_profile, source),
     .required = true,
     .help = "what the profile describes, and what it was fitted on"},
    COEFFICIENT(ms_profile, tile_m, "tile_m", MS_UNIT_COUNT, 1, 4096,
                "rows of an output tile"),
    COEFFICIENT(ms_profile, tile_n, "tile_n", MS_UNIT_COUNT, 1, 4096,
                "columns of an output tile"),
    OPTIONAL(ms_profile, wave_frac, "wave", MS_UNIT_COUNT, 1,
             "lost share of idle time in the last wave of tiles; default: 0"),
    OPTIONAL(ms_profile, small_tile_loss, "small_tile", MS_UNIT_COUNT, 10,
             "extra time of a tile with twice the traffic; default: 0"),
    OPTIONAL(ms_profile, flop_per_joule, "flop_per_joule", MS_UNIT_COUNT, 1e15,
             "FLOP per joule of 16-bit GEMMs at the power limit; default: no limit"),
    OPTIONAL(ms_profile, half_bits_gain, "half_bits_gain", MS_UNIT_COUNT, 4,
             "FLOP per joule with half the bits, relative; default: 2"),
    OPTIONAL(ms_profile, batched_products_frac, "batched_products", MS_UNIT_COUNT, 1,
             "rate of unfused attention's GEMMs relative to single ones; default: 1"),
    RATE_FRACTION(ms_profile, hbm_frac, "hbm_frac", "share of the listed memory rate"),
    SECONDS(ms_profile, launch_s, "launch", "host time to launch one kernel"),
    SECONDS(ms_profile, p2p_base_s, "p2p_base",
            "latency of a send inside the innermost level"),
    PART("gemm", "GEMMs, by data type"),
    PART("attention", "attention kernels"),
    PART("link", "rings inside the innermost level"),
    PART("all_to_all", "all-to-all inside the innermost level"),
    PART("nvls", "in-switch all-reduce"),
    PART("networks", "collectives over several nodes, by network"),
    PART("memory", "memory outside the framework's allocator"),
    {.kind = MS_FIELD_ANY,
     .key = "pointwise",
     .help = "rates of pointwise operations, by operation"},
    {.kind = MS_FIELD_ANY, .key = "measured", .help = "measurements of a calibration"},
    {0}};

const ms_field ms_gemm_fields[] = {
    RATE_FRACTION(ms_gemm_profile, efficiency, "efficiency",
                  "share of peak of large isolated GEMMs"),
    COEFFICIENT(ms_gemm_profile, k_half, "k_half", MS_UNIT_COUNT, 0, 1e5,
                "depth of the prologue"),
    SECONDS(ms_gemm_profile, overhead_s, "overhead", "launch and drain of one kernel"),
    OPTIONAL(ms_gemm_profile, hbm_frac, "hbm_frac", MS_UNIT_COUNT, 1,
             "operands' share of the listed memory rate; default: of streaming kernels"),
    OPTIONAL(ms_gemm_profile, depth_s, "depth", MS_UNIT_SECONDS, 1e-3,
             "time of a block per element of depth; default: 0"),
    OPTIONAL(ms_gemm_profile, quantize_overhead_s, "quantize_overhead", MS_UNIT_SECONDS,
             1, "overhead of casts to 8 bits or less; default: 0"),
    OPTIONAL(ms_gemm_profile, quantize_frac, "quantize", MS_UNIT_COUNT, 1,
             "casts' share of the listed memory rate; default: casts are free"),
    FRACTION(ms_gemm_profile, sustained_frac, "sustained",
             "rate in training relative to isolated kernels"),
    {0}};

const ms_field ms_attention_fields[] = {
    COEFFICIENT(ms_attention_profile, forward_flop_per_s, "forward", MS_UNIT_FLOP_PER_S,
                1e6, 1e17, "forward rate"),
    COEFFICIENT(ms_attention_profile, backward_flop_per_s, "backward", MS_UNIT_FLOP_PER_S,
                1e6, 1e17, "backward rate"),
    RATE_FRACTION(ms_attention_profile, small_head_frac, "small_head",
                  "rate at head dimension 64 relative to 128"),
    COEFFICIENT(ms_attention_profile, half_sequence, "half_sequence", MS_UNIT_COUNT, 0,
                1e6, "sequence length of half the rate"),
    FRACTION(ms_attention_profile, sustained_frac, "sustained",
             "rate in training relative to isolated kernels"),
    OPTIONAL(ms_attention_profile, overhead_s, "overhead", MS_UNIT_SECONDS, 10,
             "time of one kernel besides its FLOP; default: none"),
    {0}};

const ms_field ms_pointwise_fields[] = {
    COEFFICIENT(ms_pointwise_profile, bytes_per_s, "rate", MS_UNIT_BYTES_PER_S, 1, 1e15,
                "rate of bytes read and written"),
    SECONDS(ms_pointwise_profile, overhead_s, "overhead", "time of one kernel"),
    {0}};

static const ms_field link_fields[] = {
    SECONDS(ms_profile, link_base_s, "base", "latency of a collective"),
    SECONDS(ms_profile, link_step_s, "step", "time of a ring step"),
    RATE_FRACTION(ms_profile, link_frac, "frac", "share of the listed link rate"),
    COEFFICIENT(ms_profile, ramp, "ramp", MS_UNIT_COUNT, 0, 10,
                "gamma of middle message sizes"),
    {0}};

static const ms_field all_to_all_fields[] = {
    SECONDS(ms_profile, all_to_all_base_s, "base", "latency of an all-to-all"),
    SECONDS(ms_profile, all_to_all_step_s, "step", "time per doubling of the group"),
    RATE_FRACTION(ms_profile, all_to_all_frac, "frac", "share of the listed link rate"),
    {0}};

static const ms_field nvls_fields[] = {
    NULLABLE(ms_profile, nvls_base_s, "base", MS_UNIT_SECONDS, 0, 10, "latency"),
    NULLABLE(ms_profile, nvls_bytes_per_s, "bandwidth", MS_UNIT_BYTES_PER_S, 1, 1e15,
             "bus bandwidth"),
    NULLABLE(ms_profile, nvls_min_ranks, "min_ranks", MS_UNIT_COUNT, 2, 1e6,
             "smallest group that uses it"),
    {0}};

const ms_field ms_network_fields[] = {
    SECONDS(ms_network_profile, base_s, "base",
            "latency of a collective over several nodes"),
    SECONDS(ms_network_profile, step_s, "step", "time of a step across nodes"),
    SECONDS(ms_network_profile, rank_step_s, "rank_step", "least time of any ring step"),
    FRACTION(ms_network_profile, bandwidth_frac, "bandwidth_frac",
             "share of the NICs' list rate"),
    OPTIONAL(ms_network_profile, send_frac, "send_frac", MS_UNIT_COUNT, 1,
             "a pair of ranks' share of the NICs' rate; default: bandwidth_frac"),
    FRACTION(ms_network_profile, tree_frac, "tree_frac",
             "share of bandwidth_frac of a tree over three or more nodes"),
    OPTIONAL(ms_network_profile, tree_serial, "tree_serial", MS_UNIT_COUNT, 1,
             "wait of a tree level for the previous, relative; default: 0"),
    COEFFICIENT(ms_network_profile, ramp, "ramp", MS_UNIT_COUNT, 0, 10, "gamma of rings"),
    OPTIONAL(ms_network_profile, tree_ramp, "tree_ramp", MS_UNIT_COUNT, 10,
             "gamma of trees; default: 0"),
    {0}};

static const ms_field memory_fields[] = {
    COEFFICIENT(ms_profile, context_bytes, "context", MS_UNIT_BYTES, 0, 1e12,
                "CUDA context and kernels"),
    COEFFICIENT(ms_profile, communicator_bytes, "communicator", MS_UNIT_BYTES, 0, 1e12,
                "buffers of one communicator"),
    {0}};

const ms_profile_section ms_profile_sections[] = {{"link", link_fields},
                                                  {"all_to_all", all_to_all_fields},
                                                  {"nvls", nvls_fields},
                                                  {"memory", memory_fields},
                                                  {0}};

/* Reads the JSON object `family`: member names[i] into the struct at out + i * size. */
static ms_status read_family(ms_ctx *cx, ms_jval family, const char *const *names,
                             const ms_field *fields, size_t size, char *out)
{
    int num_names = 0;
    while (names[num_names] != NULL)
        num_names++;
    ms_field *keys = MS_NEW_ARRAY(cx->arena, num_names + 1, ms_field);
    for (int i = 0; i < num_names; i++)
        keys[i] =
            (ms_field){.kind = MS_FIELD_ANY, .key = names[i], .help = "coefficients"};
    ms_status status = ms_json_read(cx, family, keys, out);
    for (int i = 0; i < num_names && status == MS_OK; i++) {
        ms_jval member;
        if (ms_json_member(cx, family, names[i], &member))
            status = ms_coefficients_read(cx, member, fields, out + (size_t)i * size);
    }
    return status;
}

static ms_status read_kernels(ms_ctx *cx, ms_jval root, ms_profile *out)
{
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        out->gemm[i].efficiency.value = NAN;
    for (int i = 0; i < MS_NUM_ATTENTION_KERNELS; i++)
        out->attention[i].forward_flop_per_s.value =
            out->attention[i].backward_flop_per_s.value =
                out->attention[i].overhead_s.value = NAN;
    ms_jval gemm;
    ms_jval attention;
    if (!ms_json_member(cx, root, "gemm", &gemm) ||
        !ms_json_member(cx, root, "attention", &attention))
        return MS_EINPUT;
    MS_TRY(read_family(cx, gemm, ms_dtype_names, ms_gemm_fields, sizeof(ms_gemm_profile),
                       (char *)out->gemm));
    const int fused =
        MS_ATTENTION_UNFUSED + 1; /* unfused attention has no coefficients of its own */
    return read_family(cx, attention, ms_attention_kernel_names + fused,
                       ms_attention_fields, sizeof(ms_attention_profile),
                       (char *)(out->attention + fused));
}

/* Reads the JSON objects whose coefficients are members of ms_profile itself. */
static ms_status read_sections(ms_ctx *cx, ms_jval root, ms_profile *out)
{
    ms_jval value;
    for (const ms_profile_section *part = ms_profile_sections; part->key != NULL;
         part++) {
        if (!ms_json_member(cx, root, part->key, &value))
            return MS_EINPUT; /* a missing object was reported before */
        MS_TRY(ms_coefficients_read(cx, value, part->fields, out));
    }
    int num_null = isnan(out->nvls_base_s.value) + isnan(out->nvls_bytes_per_s.value) +
                   isnan(out->nvls_min_ranks.value);
    ms_json_member(cx, root, "nvls", &value);
    if (num_null % 3 != 0)
        return ms_json_fail(cx, value,
                            "base, bandwidth and min_ranks must be all null or none");
    return MS_OK;
}

static ms_status read_networks(ms_ctx *cx, ms_jval root, ms_profile *out)
{
    ms_jval networks;
    if (!ms_json_member(cx, root, "networks", &networks))
        return MS_EINPUT;
    if (!ms_json_is_object(networks) || ms_json_length(networks) > MS_MAX_NETWORKS)
        return ms_json_fail(cx, networks,
                            "networks must be an object of at most %d networks",
                            MS_MAX_NETWORKS);
    for (int i = 0; i < ms_json_length(networks); i++) {
        const char *key = NULL;
        ms_jval value = ms_json_entry(cx, networks, i, &key);
        if (ms_profile_network(out, key) != NULL)
            return ms_json_fail(cx, value, "network \"%s\" stands twice", key);
        ms_network_profile *network = &out->networks[out->num_networks];
        network->name = ms_arena_strdup(cx->arena, key);
        MS_TRY(ms_coefficients_read(cx, value, ms_network_fields, network));
        out->num_networks++;
    }
    return MS_OK;
}

static ms_status read_pointwise(ms_ctx *cx, ms_jval object, ms_profile *out)
{
    out->pointwise = MS_NEW_ARRAY(cx->arena, MS_NUM_OPS, ms_pointwise_profile);
    for (int i = 0; i < MS_NUM_OPS; i++)
        out->pointwise[i].bytes_per_s.value = NAN;
    MS_TRY(read_family(cx, object, ms_op_names, ms_pointwise_fields,
                       sizeof(ms_pointwise_profile), (char *)out->pointwise));
    for (int i = 0; i < MS_NUM_OPS; i++)
        if (!ms_op_is_pointwise((ms_op)i) && !isnan(out->pointwise[i].bytes_per_s.value))
            return ms_json_fail(cx, object, "\"%s\" has a law of its own, no rate",
                                ms_op_names[i]);
    return MS_OK;
}

/* Reads members that only calibrated profiles have: rates and measured times. */
static ms_status read_calibrated(ms_ctx *cx, ms_jval root, ms_profile *out)
{
    ms_jval member;
    if (ms_json_member(cx, root, "pointwise", &member))
        MS_TRY(read_pointwise(cx, member, out));
    if (!ms_json_member(cx, root, "measured", &member))
        return MS_OK;
    ms_sweep *measured = MS_NEW(cx->arena, ms_sweep);
    out->measured = measured;
    return ms_sweep_read(cx, member, measured);
}

ms_status ms_profile_read(ms_ctx *cx, ms_jval root, ms_profile *out)
{
    *out = (ms_profile){0};
    MS_TRY(ms_coefficients_read(cx, root, ms_profile_fields, out));
    MS_TRY(read_sections(cx, root, out));
    MS_TRY(read_kernels(cx, root, out));
    MS_TRY(read_calibrated(cx, root, out));
    if (out->measured == NULL)
        MS_TRY(ms_profile_check_shares(cx, root));
    return read_networks(cx, root, out);
}

ms_status ms_profile_load(ms_ctx *cx, const char *name, const ms_profile **out)
{
    return ms_profile_load_for(cx, name, NULL, out);
}

ms_status ms_profile_load_for(ms_ctx *cx, const char *name, const ms_cluster *cluster,
                              const ms_profile **out)
{
    const char *path = NULL;
    MS_TRY(ms_config_resolve(cx, "profiles", "profile", name, &path));
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_profile *profile = MS_NEW(cx->arena, ms_profile);
    ms_status status = ms_profile_read(cx, root, profile);
    if (status == MS_OK && cluster != NULL && profile->measured == NULL)
        status = ms_profile_check_peaks(cx, root, profile, cluster);
    ms_json_close(doc);
    *out = profile;
    return status;
}

const ms_network_profile *ms_profile_network(const ms_profile *profile,
                                             const char *network)
{
    for (int i = 0; i < profile->num_networks; i++)
        if (strcmp(profile->networks[i].name, network) == 0)
            return &profile->networks[i];
    return NULL;
}

/* ---- listing ---- */

static void list_kernels(const ms_profile *profile, ms_figures *list)
{
    for (int i = 0; i < MS_NUM_DTYPES; i++) {
        if (!isnan(profile->gemm[i].efficiency.value)) {
            ms_figures_add(
                list, ms_arena_printf(list->arena, "gemm.%s", ms_dtype_names[i]),
                ms_gemm_fields,
                offsetof(ms_profile, gemm) + (size_t)i * sizeof *profile->gemm);
        }
    }
    for (int i = 0; i < MS_NUM_ATTENTION_KERNELS; i++) {
        if (!isnan(profile->attention[i].forward_flop_per_s.value)) {
            ms_figures_add(list,
                           ms_arena_printf(list->arena, "attention.%s",
                                           ms_attention_kernel_names[i]),
                           ms_attention_fields,
                           offsetof(ms_profile, attention) +
                               (size_t)i * sizeof *profile->attention);
        }
    }
}

void ms_profile_figures(const ms_profile *profile, ms_figures *list)
{
    ms_figures_add(list, "", ms_profile_fields, 0);
    list_kernels(profile, list);
    ms_figures_add(list, "link", link_fields, 0);
    ms_figures_add(list, "all_to_all", all_to_all_fields, 0);
    if (!isnan(profile->nvls_bytes_per_s.value))
        ms_figures_add(list, "nvls", nvls_fields, 0);
    for (int i = 0; i < profile->num_networks; i++) {
        ms_figures_add(
            list, ms_arena_printf(list->arena, "networks.%s", profile->networks[i].name),
            ms_network_fields,
            offsetof(ms_profile, networks) + (size_t)i * sizeof *profile->networks);
    }
    ms_figures_add(list, "memory", memory_fields, 0);
}
