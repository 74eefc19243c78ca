/* Writes a cost profile by the field tables that read it. */
#include "costmodel/profile/profile_priv.h"

#include "costmodel/tensor/op.h"

#include <math.h>

/* Units in which quantities are written: "3.2 us", "12.5 GB/s". */
static const struct {
    double scale;
    const char *name;
} units[] = {
    [MS_UNIT_BYTES] = {1.0, "B"},
    [MS_UNIT_BYTES_PER_S] = {1e9, "GB/s"},
    [MS_UNIT_SECONDS] = {1e-6, "us"},
    [MS_UNIT_FLOP_PER_S] = {1e9, "GFLOP/s"},
};

static void write_value(ms_jout *out, double value, ms_unit unit)
{
    char text[64];
    ms_jout_key(out, "value");
    if (isnan(value)) {
        ms_jout_null(out);
    } else if (unit == MS_UNIT_COUNT) {
        ms_jout_number(out, value);
    } else {
        snprintf(text, sizeof text, "%.6g %s", value / units[unit].scale,
                 units[unit].name);
        ms_jout_text(out, text);
    }
}

static void write_coefficients(ms_jout *out, const ms_field *fields, const void *in)
{
    for (const ms_field *field = fields; field->kind != MS_FIELD_END; field++) {
        if (field->kind != MS_FIELD_ANY || field->low >= field->high)
            continue;
        const ms_coefficient *c =
            (const ms_coefficient *)(const void *)((const char *)in + field->offset);
        if (c->source == NULL)
            continue; /* skips a coefficient that the profile lacks */
        ms_jout_begin_object_field(out, field->key);
        write_value(out, c->value, field->unit);
        ms_jout_text_field(out, "from", ms_provenance_names[c->from]);
        ms_jout_text_field(out, "source", c->source);
        ms_jout_end_object(out);
    }
}

static void write_part(ms_jout *out, const char *key, const ms_field *fields,
                       const void *in)
{
    ms_jout_begin_object_field(out, key);
    write_coefficients(out, fields, in);
    ms_jout_end_object(out);
}

static void write_kernels(ms_jout *out, const ms_profile *profile)
{
    ms_jout_begin_object_field(out, "gemm");
    for (int i = 0; i < MS_NUM_DTYPES; i++)
        if (!isnan(profile->gemm[i].efficiency.value))
            write_part(out, ms_dtype_names[i], ms_gemm_fields, &profile->gemm[i]);
    ms_jout_end_object(out);
    ms_jout_begin_object_field(out, "attention");
    for (int i = 0; i < MS_NUM_ATTENTION_KERNELS; i++)
        if (!isnan(profile->attention[i].forward_flop_per_s.value))
            write_part(out, ms_attention_kernel_names[i], ms_attention_fields,
                       &profile->attention[i]);
    ms_jout_end_object(out);
}

static void write_pointwise(ms_jout *out, const ms_pointwise_profile *pointwise)
{
    ms_jout_begin_object_field(out, "pointwise");
    for (int op = 0; op < MS_NUM_OPS; op++)
        if (!isnan(pointwise[op].bytes_per_s.value))
            write_part(out, ms_op_names[op], ms_pointwise_fields, &pointwise[op]);
    ms_jout_end_object(out);
}

void ms_profile_write_json(ms_jout *out, const ms_profile *profile, const char *date)
{
    ms_jout_begin_object(out);
    ms_jout_text_field(out, "name", profile->name);
    ms_jout_text_field(out, "source", profile->source);
    ms_jout_text_field(out, "date", date);
    write_coefficients(out, ms_profile_fields, profile);
    for (const ms_profile_section *part = ms_profile_sections; part->key != NULL; part++)
        write_part(out, part->key, part->fields, profile);
    write_kernels(out, profile);
    ms_jout_begin_object_field(out, "networks");
    for (int i = 0; i < profile->num_networks; i++)
        write_part(out, profile->networks[i].name, ms_network_fields,
                   &profile->networks[i]);
    ms_jout_end_object(out);
    if (profile->pointwise != NULL)
        write_pointwise(out, profile->pointwise);
    if (profile->measured != NULL) {
        ms_jout_key(out, "measured");
        ms_sweep_write(out, profile->measured);
    }
    ms_jout_end_object(out);
}
