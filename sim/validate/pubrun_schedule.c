/* Reads pipeline schedules and recomputation from words of published runs. */
#include "costmodel/schedule/schedule.h"
#include "sim/validate/pubrun_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- schedules ---- */

static bool is_number(const char *plain)
{
    return *plain != '\0' && plain[strspn(plain, "0123456789")] == '\0';
}

/* The number that follows `word` in a text, as in "virtual pipeline 12", or precedes it;
 * 0 if none. */
static long number_next_to(const char *plain, const char *word)
{
    const char *digits = word + strcspn(word, "0123456789");
    if (*digits != '\0')
        return strtol(digits, NULL, 10);
    while (word > plain && isdigit((unsigned char)word[-1]))
        word--;
    return strtol(word, NULL, 10);
}

/* Virtual stages that a text states: the number after "vpp" or "v", as in "interleaved
 * vpp=2", "VPP 4", "v=2", next to "virtual", "chunks", "repeats", "interleaved", or a
 * number alone; 0 if none. */
static long virtual_stages_in(const char *plain)
{
    if (is_number(plain))
        return strtol(plain, NULL, 10);
    const char *word = strstr(plain, "virtual");
    if (word != NULL)
        return number_next_to(plain, word);
    for (const char *at = strchr(plain, 'v'); at != NULL; at = strchr(at + 1, 'v')) {
        const char *digits = at + 1 + strspn(at + 1, "pstages=:");
        long v = strtol(digits, NULL, 10);
        if (v >= 1 && v <= 1000)
            return v;
    }
    static const char *const others[] = {"chunk", "repeat", "interleavedx",
                                         "interleaved("};
    bool is_per_chunk = strstr(plain, "perchunk") != NULL;
    for (size_t i = 0; i < sizeof others / sizeof *others && !is_per_chunk; i++)
        if ((word = strstr(plain, others[i])) != NULL)
            return number_next_to(plain, word);
    return 0;
}

static void set_interleaved(ms_pubrun_notes *notes, ms_plan *plan, long virtual_stages)
{
    if (virtual_stages <= 0) { /* torchtitan's default: 2 chunks */
        virtual_stages = 2;
        ms_pubrun_note(notes, "2 virtual stages");
    }
    plan->virtual_stages = virtual_stages;
    if (virtual_stages == 1)
        return;
    plan->schedule = MS_INTERLEAVED;
    /* The default of Megatron-LM's microbatch_group_size_per_vp_stage is the pipeline
     * size. */
    long microbatches = ms_plan_microbatches(plan);
    if (microbatches % plan->size[MS_PP] == 0)
        plan->microbatch_group = plan->size[MS_PP];
}

/* Puts one layer in each model chunk. If pp divides not the number of layers but that
 * number + 2, embedding and head count as a layer each and are alone in the first and the
 * last chunk (arXiv 2401.10241 section 4; arXiv 2407.21783 section 3.3.2, which takes a
 * layer each from the first and the last rank). */
static void set_single_layers(ms_pubrun_notes *notes, ms_pubrun *run)
{
    ms_plan *plan = &run->plan;
    long num_layers = run->model->num_layers, pp = plan->size[MS_PP];
    bool ends_alone = num_layers % pp != 0 && (num_layers + 2) % pp == 0;
    if (ends_alone) {
        long *layers = MS_NEW_ARRAY(notes->arena, num_layers + 2, long);
        for (long i = 1; i <= num_layers; i++)
            layers[i] = 1;
        plan->layers_per_stage = layers;
        plan->num_stage_layers = num_layers + 2;
    }
    set_interleaved(notes, plan, (num_layers + (ends_alone ? 2 : 0)) / pp);
}

/* Sets the schedule by the conventions of the stack, for a table row that names no
 * schedule, or an interleaved one without its virtual stages. */
static void set_by_stack(bool interleaved, ms_pubrun_notes *notes, ms_pubrun *run)
{
    if (!interleaved && !run->stack->interleaves) {
        ms_pubrun_note(notes, "schedule 1f1b");
    } else if (run->stack->single_layer_chunks) {
        set_single_layers(notes, run);
        ms_pubrun_note(notes, "interleaved in chunks of a layer");
    } else {
        set_interleaved(notes, &run->plan, 0);
    }
}

static bool is_interleaved(const char *plain)
{
    static const char *const words[] = {
        "interleav", "vpp", "vp=", "v=", "virtual", "chunks", "circular", NULL};
    if (strstr(plain, "noninterleav") != NULL || strstr(plain, "zb") != NULL ||
        strstr(plain, "zero") != NULL)
        return false;
    for (const char *const *word = words; *word != NULL; word++)
        if (strstr(plain, *word) != NULL)
            return true;
    bool is_short = strncmp(plain, "vp", 2) == 0 && isdigit((unsigned char)plain[2]);
    return is_short || strncmp(plain, "1f1bi", 5) == 0 || is_number(plain);
}

const char *ms_pubrun_set_schedule(const ms_pubrun_cells *cells, ms_pubrun_notes *notes,
                                   ms_pubrun *run)
{
    ms_plan *plan = &run->plan;
    plan->schedule = MS_1F1B;
    plan->virtual_stages = 1;
    if (plan->size[MS_PP] == 1)
        return NULL;
    const char *plain = ms_plain_text(notes->arena, cells->schedule);
    long stages = virtual_stages_in(plain);
    if (strcmp(plain, "0") == 0) {
        ms_pubrun_note(notes, "0 virtual stages taken as 1");
    } else if (*plain == '\0') {
        set_by_stack(false, notes, run);
    } else if (strstr(plain, "1layerperchunk") != NULL) {
        set_single_layers(notes, run);
    } else if (ms_schedule_parse(plain, &plan->schedule) &&
               plan->schedule != MS_INTERLEAVED) {
        ms_schedule_traits traits = ms_schedule_traits_of(plan->schedule);
        plan->virtual_stages = traits.least_virtual;
        if (traits.groups && traits.least_virtual > 1)
            return "schedule: number of virtual stages not stated";
    } else if (is_interleaved(plain) && stages > 0) {
        set_interleaved(notes, plan, stages);
    } else if (is_interleaved(plain)) {
        set_by_stack(true, notes, run);
    } else if (strstr(plain, "noninterleav") == NULL && strcmp(plain, "none") != 0 &&
               strcmp(plain, "n/a") != 0) {
        ms_pubrun_note(notes, "schedule \"%s\" is not known",
                       ms_cell_text(notes->arena, cells->schedule));
        set_by_stack(false, notes, run);
    }
    return NULL;
}

void ms_pubrun_set_layers(const ms_pubrun_cells *cells, ms_arena *arena, ms_pubrun *run)
{
    ms_plan *plan = &run->plan;
    long first = cells->first_rank_layers, last = cells->last_rank_layers;
    long ranks = plan->size[MS_PP], between = ranks - (first > 0) - (last > 0);
    long rest = run->model->num_layers - first - last;
    if (first + last == 0 || plan->virtual_stages > 1 || between < 1 ||
        rest % between != 0)
        return;
    long *layers = MS_NEW_ARRAY(arena, ranks, long);
    for (long rank = 0; rank < ranks; rank++)
        layers[rank] = rest / between;
    layers[0] = first > 0 ? first : layers[0];
    layers[ranks - 1] = last > 0 ? last : layers[ranks - 1];
    plan->layers_per_stage = layers;
    plan->num_stage_layers = ranks;
}

/* ---- recomputation ---- */

/* Reads words for activation checkpointing, "checkpointing" or "activation ckpt on":
 * whole layers, or none if the text ends in "off". */
static bool names_checkpoints(const char *plain, ms_recompute *out)
{
    if (strstr(plain, "ckpt") == NULL && strstr(plain, "checkpoint") == NULL)
        return false;
    size_t length = strlen(plain);
    bool off = length > 3 && strcmp(plain + length - 3, "off") == 0;
    *out = off ? MS_RECOMPUTE_NONE : MS_RECOMPUTE_FULL;
    return true;
}

int ms_pubrun_modules(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    int modules = 0;
    for (const char *at = text; *at != '\0';) {
        size_t length = strspn(at, letters);
        for (int i = 0; (1 << i) <= MS_MODULE_SHARED_EXPERTS; i++)
            if (strlen(ms_module_names[i]) == length &&
                memcmp(at, ms_module_names[i], length) == 0)
                modules |= 1 << i;
        at += length > 0 ? length : 1;
    }
    return modules;
}

void ms_pubrun_set_modules(const ms_pubrun_cells *cells, const char *text, ms_pubrun *run)
{
    ms_plan *plan = &run->plan;
    const char *named = cells->recompute_modules;
    if (plan->recompute != MS_RECOMPUTE_SELECTIVE)
        return;
    if (named == NULL || !ms_modules_parse(named, &plan->recompute_modules))
        plan->recompute_modules = ms_pubrun_modules(named != NULL ? named : text);
    plan->recompute_modules &= ~ms_plan_lacking_modules(plan, run->model);
}

bool ms_pubrun_recompute(const ms_name_tables *names, const char *text, ms_recompute *out)
{
    const char *plain = ms_plain_text(names->arena, text);
    bool is_jax = strncmp(plain, "nothing", 7) == 0; /* JAX's policy "nothing_saveable" */
    if (strncmp(plain, "not", 3) == 0 && !is_jax)    /* text such as "not stated" */
        return false;
    if (strncmp(plain, "no", 2) == 0 && !is_jax) {
        *out = MS_RECOMPUTE_NONE;
        return true;
    }
    const ms_recompute_name *rows = names->recompute.rows;
    for (int i = 0; i < names->recompute.num_rows; i++) {
        const char *name = rows[i].name;
        if (rows[i].whole ? strcmp(plain, name) == 0 : strstr(plain, name) != NULL) {
            *out = (ms_recompute)rows[i].mode;
            return true;
        }
    }
    return names_checkpoints(plain, out);
}
