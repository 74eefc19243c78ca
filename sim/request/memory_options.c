#include "sim/request/memory_options.h"

#include "base/note.h"
#include "base/units.h"
#include "sim/step/prediction_text.h"

const ms_option ms_memory_option_table[] = {
    MS_OPT_NUMBER(ms_memory_options, min_fit, "--min-fit", "P", 1,
                  "only plans whose measured peak memory will fit with probability P by "
                  "the errors of published runs; 0: whose predicted peak fits (default "
                  "0.95)"),
    MS_OPT_TEXT(ms_memory_options, headroom, "--headroom", "SHARE%|SIZE",
                "memory of a GPU that must stay free: 8%, 6GiB (default none)"),
    {0},
};

static ms_status read_headroom(ms_ctx *cx, const char *text, ms_memory_rule *out)
{
    if (text == NULL || ms_parse_percentage(text, &out->headroom_frac))
        return MS_OK;
    if (ms_parse_quantity(text, MS_UNIT_BYTES, &out->headroom_bytes))
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "--headroom is \"%s\", must be a share of memory below 100 %% or a size",
            text);
    return ms_hint(cx, "--headroom 8%%, or --headroom 6GiB");
}

ms_status ms_memory_options_rule(ms_ctx *cx, const ms_memory_options *options,
                                 ms_memory_rule *out)
{
    *out = (ms_memory_rule){.min_probability = options->min_fit.value};
    if (!options->min_fit.given) {
        out->min_probability = MS_DEFAULT_MIN_FIT;
        ms_note_default(cx, "--min-fit %g", out->min_probability);
    }
    if (out->min_probability >= 1.0) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "--min-fit is 1, must be below 1: a future run "
                "may have any error");
        return ms_hint(cx, "--min-fit 0.99");
    }
    return read_headroom(cx, options->headroom, out);
}

ms_status ms_memory_options_check(ms_ctx *cx, const ms_memory_rule *rule,
                                  const ms_cluster *cluster)
{
    double device_bytes = cluster->device.memory_bytes;
    if (rule->headroom_bytes < device_bytes)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE,
            "--headroom %.2f GiB leaves nothing of the %.2f GiB of a GPU of %s",
            ms_gib(rule->headroom_bytes), ms_gib(device_bytes), cluster->name);
    return ms_hint(cx, "--headroom 8%%, or --headroom 6GiB");
}
