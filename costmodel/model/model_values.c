/* Features of a model that change values, not shapes: checks, and numbers derived from
 * them. */
#include "costmodel/model/model_priv.h"

#include <math.h>
#include <string.h>

void ms_model_add_not_executed(ms_ctx *cx, ms_model *model, const char *name)
{
    int num = 0;
    for (; model->not_executed != NULL && model->not_executed[num] != NULL; num++)
        if (strcmp(model->not_executed[num], name) == 0)
            return;
    const char **names = MS_NEW_ARRAY(cx->arena, num + 2, const char *);
    for (int i = 0; i < num; i++)
        names[i] = model->not_executed[i];
    names[num] = name;
    model->not_executed = names;
}

double ms_model_attention_scale(const ms_model *model, long width)
{
    const ms_rotary_scaling *scaling = &model->rotary_scaling;
    double scalar =
        model->query_pre_attn_scalar > 0.0 ? model->query_pre_attn_scalar : (double)width;
    double factor = 1.0;
    if (model->attention == MS_ATTENTION_MLA && scaling->kind == MS_ROTARY_SCALING_YARN &&
        scaling->mscale_all_dim > 0.0)
        factor = 0.1 * scaling->mscale_all_dim * log(scaling->factor) + 1.0;
    return factor * factor / sqrt(scalar);
}

/* ---- checks ---- */

static ms_status check_scaling(ms_ctx *cx, const ms_rotary_scaling *s, ms_loc loc)
{
    bool llama3 = s->kind == MS_ROTARY_SCALING_LLAMA3,
         yarn = s->kind == MS_ROTARY_SCALING_YARN;
    if ((llama3 || yarn) && s->original_positions < 1.0)
        return ms_fail(cx, MS_EINPUT, loc,
                       "this rotary scaling needs the original number of positions");
    if (llama3 && !(s->low_frequency_factor > 0.0 &&
                    s->high_frequency_factor >= s->low_frequency_factor)) {
        return ms_fail(cx, MS_EINPUT, loc,
                       "the high frequency factor of llama3's rotary scaling, %g, must "
                       "be at least the low one, %g, and both more than 0",
                       s->high_frequency_factor, s->low_frequency_factor);
    }
    if (yarn && !(s->beta_slow > 0.0 && s->beta_fast >= s->beta_slow)) {
        return ms_fail(cx, MS_EINPUT, loc,
                       "beta_fast of yarn's rotary scaling, %g, must be at least "
                       "beta_slow, %g, and both more than 0",
                       s->beta_fast, s->beta_slow);
    }
    return MS_OK;
}

static ms_status check_groups(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    long num = model->moe.num_groups, top = model->moe.top_groups,
         experts = model->moe.num_experts;
    if (num <= 1)
        return MS_OK;
    if (experts % num != 0)
        return ms_fail(cx, MS_EINPUT, loc, "%ld experts are not divisible by %ld groups",
                       experts, num);
    if (top < 1 || top > num)
        return ms_fail(cx, MS_EINPUT, loc, "%ld of %ld groups of experts are chosen", top,
                       num);
    if (model->moe.top_k > top * (experts / num))
        return ms_fail(cx, MS_EINPUT, loc,
                       "%ld experts per token, but the chosen groups have %ld",
                       model->moe.top_k, top * (experts / num));
    return MS_OK;
}

ms_status ms_model_check_values(ms_ctx *cx, const ms_model *model, ms_loc loc)
{
    if (model->rotary_dim < 0 || model->rotary_dim % 2 != 0 ||
        model->rotary_dim > model->head_dim)
        return ms_fail(cx, MS_EINPUT, loc,
                       "%ld rotated entries of a head must be even, at most %ld",
                       model->rotary_dim, model->head_dim);
    if (model->rotary_dim > 0 && model->attention == MS_ATTENTION_MLA)
        return ms_fail(cx, MS_EINPUT, loc,
                       "MLA states the rotated entries by rope_head_dim");
    MS_TRY(check_scaling(cx, &model->rotary_scaling, loc));
    return check_groups(cx, model, loc);
}
