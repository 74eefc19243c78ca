/* Rotary positions of a node: laws of scaling and their constants. */
#include "exec/core/rotary.h"

#define DEFAULT_BASE 10000.0
#define TWO_PI       6.283185307179586

/* The pair that turns `turns` times over the original positions (Peng et al. 2023). */
static double pair_of_turns(const ms_rotary *r, double positions, double turns)
{
    return (double)r->count * log(positions / (turns * TWO_PI)) / log(r->base);
}

static void set_ramp(ms_rotary *r, const ms_rotary_scaling *s)
{
    double last = 2.0 * r->count - 1.0;
    double low = pair_of_turns(r, s->original_positions, s->beta_fast),
           high = pair_of_turns(r, s->original_positions, s->beta_slow);
    r->low = fmax(s->untruncated ? low : floor(low), 0.0);
    r->high = fmin(s->untruncated ? high : ceil(high), last);
    if (r->high <= r->low)
        r->high = r->low + 0.001;
}

static double yarn_scale(double factor, double mscale)
{
    return factor <= 1.0 ? 1.0 : 0.1 * mscale * log(factor) + 1.0;
}

static double yarn_amplitude(const ms_rotary_scaling *s)
{
    if (s->attention_factor > 0.0)
        return s->attention_factor;
    if (s->mscale > 0.0 && s->mscale_all_dim > 0.0)
        return yarn_scale(s->factor, s->mscale) /
               yarn_scale(s->factor, s->mscale_all_dim);
    return yarn_scale(s->factor, 1.0);
}

ms_rotary ms_rotary_of(const ms_model *model, const ms_node *node)
{
    static const ms_rotary_law laws[] = {[MS_ROTARY_SCALING_NONE] = MS_ROTARY_PLAIN,
                                         [MS_ROTARY_SCALING_LINEAR] = MS_ROTARY_LINEAR,
                                         [MS_ROTARY_SCALING_LLAMA3] = MS_ROTARY_LLAMA3,
                                         [MS_ROTARY_SCALING_YARN] = MS_ROTARY_YARN};
    const ms_rotary_scaling *s = &model->rotary_scaling;
    bool local = node->window_tokens > 0 && model->rotary_local_base > 0.0;
    double base = local ? model->rotary_local_base : model->rotary_base;
    ms_rotary r = {.law = local ? MS_ROTARY_PLAIN : laws[s->kind],
                   .count = (int)(node->rotary_width / 2),
                   .base = base > 0.0 ? base : DEFAULT_BASE,
                   .factor = s->factor,
                   .amplitude = 1.0,
                   .interleaved = model->rotary_interleaved,
                   .leading = model->rotary_dim > 0};
    if (r.law == MS_ROTARY_LLAMA3) {
        r.low = s->original_positions / s->low_frequency_factor;
        r.high = s->original_positions / s->high_frequency_factor;
    } else if (r.law == MS_ROTARY_YARN) {
        set_ramp(&r, s);
        r.amplitude = yarn_amplitude(s);
    }
    return r;
}
