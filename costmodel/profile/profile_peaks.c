/* Refuses profiles that imply rates above those that are listed. */
#include "costmodel/profile/profile_priv.h"

#include "base/number.h"

#include <math.h>

/* Refuses shares of a listed rate above 1 among the coefficients of an object. */
static ms_status check_object(ms_ctx *cx, ms_jval object, const ms_field *fields)
{
    ms_status status = MS_OK;
    for (const ms_field *field = fields; field->kind != MS_FIELD_END; field++) {
        ms_jval member, value;
        double share = 0.0;
        if (field->high != MS_MOST_RATE_FRAC ||
            !ms_json_member(cx, object, field->key, &member) ||
            !ms_json_member(cx, member, "value", &value))
            continue;
        MS_TRY(ms_json_number(cx, value, field->low, field->high, &share));
        if (share <= 1.0)
            continue;
        status = ms_json_fail(cx, value, "\"%s\" is %g, a rate above the listed one",
                              field->key, share);
        ms_hint(cx,
                "write the %s, at most 1; only profiles of meshsim calibrate may "
                "exceed what a cluster lists",
                field->help);
    }
    return status;
}

/* Refuses such shares in the member `key` of a profile, an object of objects. */
static ms_status check_family(ms_ctx *cx, ms_jval root, const char *key,
                              const ms_field *fields)
{
    ms_jval family;
    ms_status status = MS_OK;
    if (!ms_json_member(cx, root, key, &family))
        return MS_OK;
    for (int i = 0; i < ms_json_length(family); i++) {
        const char *name;
        if (check_object(cx, ms_json_entry(cx, family, i, &name), fields) != MS_OK)
            status = MS_EINPUT;
    }
    return status;
}

ms_status ms_profile_check_shares(ms_ctx *cx, ms_jval root)
{
    MS_TRY(check_object(cx, root, ms_profile_fields));
    for (const ms_profile_section *part = ms_profile_sections; part->key != NULL;
         part++) {
        ms_jval member;
        if (ms_json_member(cx, root, part->key, &member))
            MS_TRY(check_object(cx, member, part->fields));
    }
    MS_TRY(check_family(cx, root, "gemm", ms_gemm_fields));
    return check_family(cx, root, "attention", ms_attention_fields);
}

ms_dtype ms_profile_attention_type(const ms_profile *profile, const ms_device *device)
{
    static const ms_dtype types[] = {MS_BF16, MS_FP16, MS_TF32, MS_FP32, MS_FP64};
    if (profile->measured != NULL)
        return (ms_dtype)profile->measured->dtype;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (device->peak_flop_per_s[types[i]] > 0.0)
            return types[i];
    return MS_BF16;
}

/* A rate of a profile and the most that the cluster allows it to be. */
typedef struct rate_limit {
    ms_jval object;  /* JSON object with the rate's coefficient */
    const char *key; /* key of the coefficient in `object` */
    double rate, most;
    ms_unit unit;
    const char *of_what; /* words for the listed rate `most` */
} rate_limit;

static ms_status check_rate(ms_ctx *cx, const ms_cluster *cluster, const rate_limit *at)
{
    char rate[64], most[64];
    if (!(at->rate > at->most * (1.0 + 1e-9)))
        return MS_OK;
    const ms_loc *stated = &cluster->device.peak_loc;
    ms_fail(cx, MS_EINPUT, ms_json_key_loc(cx, at->object, at->key),
            "\"%s\" is %s, above %s of device \"%s\", %s", at->key,
            ms_format_quantity(rate, sizeof rate, at->rate, at->unit), at->of_what,
            cluster->device.name,
            ms_format_quantity(most, sizeof most, at->most, at->unit));
    return ms_hint(
        cx,
        "correct it, or what cluster \"%s\" states (%s, peaks from line %d), or "
        "choose the profile of another device",
        cluster->name, stated->file, stated->line);
}

static ms_status check_attention(ms_ctx *cx, ms_jval family, const ms_profile *profile,
                                 const ms_cluster *cluster)
{
    ms_dtype type = ms_profile_attention_type(profile, &cluster->device);
    rate_limit at = {
        .most = cluster->device.peak_flop_per_s[type],
        .unit = MS_UNIT_FLOP_PER_S,
        .of_what = ms_arena_printf(cx->arena, "the dense %s peak", ms_dtype_names[type])};
    for (int i = 0; i < MS_NUM_ATTENTION_KERNELS; i++) {
        const ms_attention_profile *kernel = &profile->attention[i];
        if (!ms_json_member(cx, family, ms_attention_kernel_names[i], &at.object))
            continue;
        at.key = "forward";
        at.rate = kernel->forward_flop_per_s.value * kernel->sustained_frac.value;
        MS_TRY(check_rate(cx, cluster, &at));
        at.key = "backward";
        at.rate = kernel->backward_flop_per_s.value * kernel->sustained_frac.value;
        MS_TRY(check_rate(cx, cluster, &at));
    }
    return MS_OK;
}

ms_status ms_profile_check_peaks(ms_ctx *cx, ms_jval root, const ms_profile *profile,
                                 const ms_cluster *cluster)
{
    ms_jval member = root;
    ms_json_member(cx, root, "attention", &member);
    MS_TRY(check_attention(cx, member, profile, cluster));
    if (cluster->levels[0].topology != MS_SWITCH)
        return MS_OK;
    ms_json_member(cx, root, "nvls", &member);
    rate_limit at = {member,
                     "bandwidth",
                     profile->nvls_bytes_per_s.value,
                     2.0 * cluster->levels[0].bandwidth_bytes_per_s,
                     MS_UNIT_BYTES_PER_S,
                     "twice the innermost links' rate"};
    return check_rate(cx, cluster, &at);
}

/* Largest legal value of a member of an attention kernel: rate x sustained is at most the
 * dense peak. */
static double attention_most(const ms_attention_profile *kernel, size_t member,
                             double peak_flop_per_s)
{
    double rate =
        ms_max(kernel->forward_flop_per_s.value, kernel->backward_flop_per_s.value);
    if (member == offsetof(ms_attention_profile, forward_flop_per_s) ||
        member == offsetof(ms_attention_profile, backward_flop_per_s))
        return peak_flop_per_s / kernel->sustained_frac.value;
    return member == offsetof(ms_attention_profile, sustained_frac)
               ? peak_flop_per_s / rate
               : (double)INFINITY;
}

double ms_profile_most(const ms_profile *profile, const ms_cluster *cluster,
                       const ms_figure *figure)
{
    double most = figure->low < figure->high ? figure->high : (double)INFINITY;
    if (profile->measured != NULL)
        return most;
    if (figure->high == MS_MOST_RATE_FRAC)
        return 1.0;
    size_t first = offsetof(ms_profile, attention), at = figure->offset;
    if (at >= first && at < first + sizeof profile->attention) {
        const ms_attention_profile *kernel =
            &profile->attention[(at - first) / sizeof *kernel];
        ms_dtype type = ms_profile_attention_type(profile, &cluster->device);
        return ms_min(most, attention_most(kernel, (at - first) % sizeof *kernel,
                                           cluster->device.peak_flop_per_s[type]));
    }
    if (at == offsetof(ms_profile, nvls_bytes_per_s) &&
        cluster->levels[0].topology == MS_SWITCH)
        return ms_min(most, 2.0 * cluster->levels[0].bandwidth_bytes_per_s);
    return most;
}
