#include "plots/caption.h"

#include "base/paths.h"

#include <string.h>

const char *const ms_memory_category_titles[] = {
    [MS_MEMORY_PARAMS] = "parameters",
    [MS_MEMORY_GRADS] = "gradients",
    [MS_MEMORY_OPTIMIZER] = "optimizer",
    [MS_MEMORY_ACTIVATIONS] = "activations",
    [MS_MEMORY_LOGITS] = "logits",
    [MS_MEMORY_GATHERED_PARAMS] = "gathered parameters",
    [MS_MEMORY_COMM_BUFFERS] = "buffers",
    [MS_MEMORY_CONTEXT] = "context",
    [MS_MEMORY_FRAGMENTATION] = "fragmentation",
    [MS_NUM_MEMORY_CATEGORIES] = NULL,
};

ms_time_unit ms_time_unit_of(double largest_s)
{
    if (largest_s >= 1.0)
        return (ms_time_unit){"s", 1.0};
    if (largest_s >= 1e-3)
        return (ms_time_unit){"ms", 1e3};
    return (ms_time_unit){"us", 1e6};
}

char *ms_caption_time(ms_arena *arena, double time_s)
{
    ms_time_unit unit = ms_time_unit_of(time_s);
    return ms_arena_printf(arena, "%.4g %s", time_s * unit.per_s, unit.name);
}

const char *ms_caption_name(ms_arena *arena, const char *name_or_path)
{
    const char *name = ms_path_name(name_or_path);
    size_t length = strlen(name);
    bool is_json = length > 5 && strcmp(name + length - 5, ".json") == 0;
    return ms_arena_strndup(arena, name, is_json ? length - 5 : length);
}

/* Appends "name size" to a list of axes if the axis is larger than 1. */
static void add_caption_axis(ms_arena *arena, char **text, const char *name, long size)
{
    if (size > 1)
        *text = ms_arena_printf(arena, "%s%s%s %ld", *text,
                                (*text)[0] == '\0' ? "" : " · ", name, size);
}

char *ms_caption_axes(ms_arena *arena, const ms_plan *plan)
{
    char *text = ms_arena_strdup(arena, "");
    for (int i = 0; i < MS_NUM_PLAN_AXES; i++)
        add_caption_axis(arena, &text, ms_plan_axis_names[plan->order[i]],
                         plan->size[plan->order[i]]);
    add_caption_axis(arena, &text, "ep", plan->ep);
    add_caption_axis(arena, &text, "etp", plan->etp);
    return text[0] == '\0' ? ms_arena_strdup(arena, "1 GPU") : text;
}

char *ms_caption_job(ms_arena *arena, const ms_plan *plan, const ms_workload *workload)
{
    return ms_arena_printf(arena, "%s on %ld × %s", workload->model->name, plan->gpus,
                           workload->cluster->device.name);
}

char *ms_caption_wrap(ms_arena *arena, const char *text, size_t most)
{
    static const char separator[] = " · ";
    char *out = ms_arena_strdup(arena, "");
    size_t on_line = 0;
    for (const char *rest = text; rest != NULL;) {
        const char *next = strstr(rest, separator);
        size_t length = next == NULL ? strlen(rest) : (size_t)(next - rest);
        bool breaks = on_line > 0 && on_line + 3 + length > most;
        const char *between = on_line == 0 ? "" : breaks ? "\n" : separator;
        out = ms_arena_printf(arena, "%s%s%.*s", out, between, (int)length, rest);
        on_line = breaks || on_line == 0 ? length : on_line + 3 + length;
        rest = next == NULL ? NULL : next + strlen(separator);
    }
    return out;
}

int ms_caption_lines(const char *text)
{
    int lines = text[0] != '\0';
    for (const char *c = text; *c != '\0'; c++)
        lines += *c == '\n';
    return lines;
}

const char *ms_caption_microbatches(ms_arena *arena, const ms_plan *plan)
{
    long num = ms_plan_microbatches(plan);
    return ms_arena_printf(arena, "%ld micro-batch%s", num, num == 1 ? "" : "es");
}

const char *ms_caption_choices(ms_arena *arena, const ms_plan *plan)
{
    const char *schedule =
        plan->size[MS_PP] == 1
            ? ""
            : ms_arena_printf(arena, " · %s", ms_plan_schedule_name(plan));
    const char *recompute = plan->recompute == MS_RECOMPUTE_NONE
                                ? ""
                                : ms_arena_printf(arena, " · recompute %s",
                                                  ms_recompute_names[plan->recompute]);
    return ms_arena_printf(arena, "zero %ld · mbs %ld%s%s", plan->zero, plan->microbatch,
                           schedule, recompute);
}

/* Slow ranks and links as text; links count only if simulated tasks load links. */
static const char *slow_text(ms_arena *arena, const ms_simulation *simulation)
{
    const ms_simulate_options *options = &simulation->options;
    int num_ranks = 0, num_links = 0, last = -1;
    for (int i = 0; i < options->num_slow; i++) {
        bool is_link = options->slow[i].is_link;
        num_links += is_link && simulation->graph->num_links > 0;
        num_ranks += !is_link;
        last = is_link ? last : i;
    }
    const char *text = "";
    if (num_ranks == 1)
        text = ms_arena_printf(arena, " · rank %ld computes %.3g times as long",
                               options->slow[last].rank, options->slow[last].factor);
    else if (num_ranks > 1)
        text = ms_arena_printf(arena, " · %d slow ranks", num_ranks);
    if (num_links > 0)
        text = ms_arena_printf(arena, "%s · %d slow link%s", text, num_links,
                               num_links == 1 ? "" : "s");
    return text;
}

const char *ms_caption_disturbance(ms_arena *arena, const ms_simulation *simulation)
{
    const ms_simulate_options *options = &simulation->options;
    const char *text = options->engine == MS_ENGINE_EVENT ? " · shared links" : "";
    text = ms_arena_printf(arena, "%s%s", text, slow_text(arena, simulation));
    if (options->jitter_frac > 0.0)
        text = ms_arena_printf(arena, "%s · jitter %.3g %%", text,
                               100.0 * options->jitter_frac);
    return text;
}
