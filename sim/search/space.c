#include "sim/search/space.h"

#include "base/rng.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Lists the choices that decide `what` (layers, prices), slowest varying first. */
static ms_choice_list list_choices(ms_choice_decides what)
{
    ms_choice_list list = {0};
    for (int i = MS_NUM_CHOICES - 1; i >= 0; i--)
        if (ms_plan_fields[i].decides == what)
            list.of[list.num++] = (ms_choice)i;
    return list;
}

ms_space ms_space_all(const ms_plan *base, const ms_stack *stack)
{
    ms_space space = {.base = *base,
                      .stack = stack,
                      .layers = list_choices(MS_DECIDES_LAYERS),
                      .prices = list_choices(MS_DECIDES_PRICES),
                      .max_virtual_stages = 8,
                      .max_microbatch = 16,
                      .keep_frac = 1.0};
    ms_plan_make_plain(&space.base);
    for (int i = 0; i < MS_NUM_CHOICES; i++)
        space.high[i] = LONG_MAX;
    return space;
}

/* ---- limits ---- */

static int find_word(const char *const *words, const char *text)
{
    for (int i = 0; words[i] != NULL; i++)
        if (strcasecmp(words[i], text) == 0)
            return i;
    return -1;
}

/* The names of all choices that a search tries, with NULL at the end. */
static const char *const *choice_names(ms_arena *arena, int *num_names)
{
    const char **names = MS_NEW_ARRAY(arena, MS_NUM_CHOICES + 1, const char *);
    int num = 0;
    for (int i = 0; i < MS_NUM_CHOICES; i++)
        if (ms_plan_fields[i].search == MS_SEARCH_TRIES)
            names[num++] = ms_plan_fields[i].name;
    *num_names = num;
    return names;
}

int ms_space_find_choice(const char *name)
{
    for (int i = 0; i < MS_NUM_CHOICES; i++) {
        const ms_plan_field *field = &ms_plan_fields[i];
        if (field->search == MS_SEARCH_TRIES &&
            (strcasecmp(field->name, name) == 0 ||
             (field->short_name != NULL && strcasecmp(field->short_name, name) == 0)))
            return i;
    }
    return -1;
}

/* Words as a list in prose: "gpipe, 1f1b or interleaved" */
static const char *words_text(ms_arena *arena, const char *const *words)
{
    const char *text = words[0];
    for (int i = 1; words[i] != NULL; i++)
        text = ms_arena_printf(arena, "%s%s%s", text,
                               words[i + 1] == NULL ? " or " : ", ", words[i]);
    return text;
}

static ms_status word_value(ms_ctx *cx, ms_choice choice, const char *text, long *out)
{
    const char *const *words = ms_choice_words(choice);
    bool (*find)(const char *, int *) = ms_plan_fields[choice].find;
    int index;
    if (find != NULL && find(text, &index) && words[index] != NULL) {
        *out = index;
        return MS_OK;
    }
    *out = find_word(words, text);
    if (*out >= 0)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "\"%s\" is no value of %s", text,
            ms_plan_fields[choice].name);
    ms_hint(cx, "use %s", words_text(cx->arena, words));
    return MS_EINPUT;
}

static ms_status number_value(ms_ctx *cx, ms_choice choice, const char *text, long *out)
{
    bool is_zero = choice == MS_CHOOSE_ZERO;
    long low = is_zero ? 0 : 1, high = is_zero ? 3 : INT_MAX - 1;
    char *end;
    *out = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || *out >= INT_MAX) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "\"%s\" is no value of %s", text,
                ms_plan_fields[choice].name);
        ms_hint(cx, "write a whole number, for example %s=%d",
                ms_plan_fields[choice].name, is_zero ? 1 : 4);
        return MS_EINPUT;
    }
    if (*out >= low && *out <= high)
        return MS_OK;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "%s is %ld, must be %s",
            ms_plan_fields[choice].name, *out,
            is_zero ? "between 0 and 3" : "at least 1");
    return MS_EINPUT;
}

/* `text` without the blanks around it. */
static char *trim(ms_arena *arena, const char *text, size_t length)
{
    size_t skipped = strspn(text, " \t");
    while (length > skipped && strchr(" \t", text[length - 1]) != NULL)
        length--;
    return ms_arena_strndup(arena, text + skipped, length - skipped);
}

/* Splits "tp<=8" into name, comparison ('=', '<' or '>') and value, without blanks. */
static bool split_limit(ms_arena *arena, const char *text, char **name, char *comparison,
                        const char **value)
{
    size_t length = strcspn(text, "<>=");
    if (length == 0 || text[length] == '\0')
        return false;
    *comparison = text[length];
    const char *rest = text + length + 1;
    if (*comparison != '=') {
        if (*rest != '=')
            return false;
        rest++;
    }
    *name = trim(arena, text, length);
    for (char *c = *name; *c != '\0'; c++)
        if (*c == '-')
            *c = '_';
    *value = trim(arena, rest, strlen(rest));
    return **name != '\0' && **value != '\0';
}

static ms_status fail_choice(ms_ctx *cx, const char *name, const char *text)
{
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "unknown choice \"%s\" in \"%s\"", name, text);
    int num_names;
    const char *const *names = choice_names(cx->arena, &num_names);
    const char *nearest = ms_nearest(name, names, num_names);
    if (nearest != NULL)
        ms_hint(cx, "did you mean %s?", nearest);
    else
        ms_hint(cx, "use %s; the flags of a plan fix its other choices",
                words_text(cx->arena, names));
    return MS_EINPUT;
}

static ms_status limit_value(ms_ctx *cx, ms_choice choice, char comparison,
                             const char *text, long *out)
{
    if (ms_choice_words(choice) == NULL)
        return number_value(cx, choice, text, out);
    MS_TRY(word_value(cx, choice, text, out));
    if (comparison == '=')
        return MS_OK;
    const char *name = ms_plan_fields[choice].name;
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "\"%s%c=%s\" compares words, and %s has no order",
            name, comparison, text, name);
    ms_hint(cx, "%s=%s", name, text);
    return MS_EINPUT;
}

/* MS_EINPUT unless the stack runs the schedule. 1F1B passes: it stands for pp 1 too. */
static ms_status check_schedule(ms_ctx *cx, const ms_space *space, long kind)
{
    if (space->stack->can_schedule[kind] || kind == MS_1F1B)
        return MS_OK;
    const char *names = "";
    for (int i = 0; i < MS_CUSTOM; i++)
        if (space->stack->can_schedule[i])
            names = ms_arena_printf(cx->arena, "%s%s%s", names,
                                    names[0] == '\0' ? "" : ", ", ms_schedule_names[i]);
    ms_fail(cx, MS_EINPUT, MS_NOWHERE, "stack %s does not run schedule %s",
            space->base.stack, ms_schedule_names[kind]);
    ms_hint(cx, "it runs %s; --stack ideal runs all", names);
    return MS_EINPUT;
}

ms_status ms_space_limit(ms_ctx *cx, ms_space *space, const char *text)
{
    char *name, comparison;
    const char *value_text;
    if (!split_limit(cx->arena, text, &name, &comparison, &value_text)) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE, "\"%s\" is no limit", text);
        ms_hint(cx, "write tp=8, tp<=8 or tp>=2");
        return MS_EINPUT;
    }
    int choice = ms_space_find_choice(name);
    if (choice < 0)
        return fail_choice(cx, name, text);
    long value;
    MS_TRY(limit_value(cx, (ms_choice)choice, comparison, value_text, &value));
    if (choice == MS_CHOOSE_SCHEDULE)
        MS_TRY(check_schedule(cx, space, value));
    if (comparison != '>' && value < space->high[choice])
        space->high[choice] = value;
    if (comparison != '<' && value > space->low[choice])
        space->low[choice] = value;
    if (space->low[choice] > space->high[choice])
        return ms_fail(cx, MS_EINPUT, MS_NOWHERE, "the limits leave no value of %s",
                       ms_plan_fields[choice].name);
    return MS_OK;
}

bool ms_space_allows(const ms_space *space, ms_choice choice, long value)
{
    if (value < space->low[choice] || value > space->high[choice])
        return false;
    if (space->keep_frac >= 1.0)
        return true;
    ms_rng rng = ms_rng_split(ms_rng_seed(space->seed),
                              (unsigned long)choice * 1000003UL + (unsigned long)value);
    return ms_rng_uniform(&rng) < space->keep_frac;
}

bool ms_space_tries_cp_method(const ms_space *space, long cp, ms_cp_method method)
{
    if (cp == 1)
        return method == MS_CP_ALL_GATHER;
    return space->stack->can_cp[method] &&
           ms_space_allows(space, MS_CHOOSE_CP_METHOD, method);
}

/* Whether a plan's tp is tried: a tp above the number of key-value heads only if the
 * user fixed tp, since few stacks copy heads. */
static bool tries_kv_heads(const ms_space *space, const ms_plan *plan,
                           const ms_model *model)
{
    return space->low[MS_CHOOSE_TP] == space->high[MS_CHOOSE_TP] ||
           !ms_plan_copies_kv_heads(plan, model);
}

ms_space ms_space_both(const ms_space *a, const ms_space *b, ms_choice *empty)
{
    ms_space both = *a;
    *empty = MS_NUM_CHOICES;
    for (int i = MS_NUM_CHOICES - 1; i >= 0; i--) {
        both.low[i] = a->low[i] > b->low[i] ? a->low[i] : b->low[i];
        both.high[i] = a->high[i] < b->high[i] ? a->high[i] : b->high[i];
        if (both.low[i] > both.high[i])
            *empty = (ms_choice)i;
    }
    return both;
}

char *ms_space_choice_text(ms_arena *arena, ms_choice choice, long value)
{
    return ms_arena_printf(arena, "%s=%s", ms_plan_fields[choice].name,
                           ms_choice_value_text(arena, choice, value));
}

/* ---- combinations ---- */

bool ms_space_tries_schedule(const ms_space *space, const ms_model *model, long pp,
                             ms_schedule_kind kind, long virtual_stages)
{
    ms_schedule_traits traits = ms_schedule_traits_of(kind);
    long most = traits.most_virtual > 0 ? traits.most_virtual : model->num_layers / pp;
    /* looped schedules with 1 chunk per rank are GPipe, 1F1B or ZB-H1: tried as such */
    long least = traits.most_virtual == 0 ? 2 : traits.least_virtual;
    bool can = space->stack->can_schedule[kind] || (pp == 1 && kind == MS_1F1B);
    return can && (pp > 1 || kind == MS_1F1B) && virtual_stages >= least &&
           virtual_stages <= most && virtual_stages <= space->max_virtual_stages &&
           ms_space_allows(space, MS_CHOOSE_SCHEDULE, (long)kind) &&
           ms_space_allows(space, MS_CHOOSE_VIRTUAL_STAGES, virtual_stages);
}

/* Whether space and stack allow the plan's value of a choice; a choice without effect
 * must have its default. Asynchronous TP needs sequence parallelism. */
static bool tries(const ms_space *space, const ms_plan *plan, ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    long value = ms_plan_get(plan, choice);
    bool is_idle = choice == MS_CHOOSE_ASYNC_TP && !plan->sequence_parallel;
    if (is_idle || !ms_plan_matters(plan, choice))
        return value == (long)field->plain;
    return (field->can == NULL || field->can(space->stack, value)) &&
           ms_space_allows(space, choice, value);
}

static bool next_combination(const ms_choice_list *choices, bool down, ms_plan *plan)
{
    for (int i = choices->num - 1; i >= 0; i--) {
        ms_choice choice = choices->of[i];
        long value = ms_plan_get(plan, choice), last = ms_choice_last(choice);
        if (value != (down ? 0 : last)) {
            ms_plan_set(plan, choice, down ? value - 1 : value + 1);
            return true;
        }
        ms_plan_set(plan, choice, down ? last : 0);
    }
    return false;
}

static bool tries_all(const ms_space *space, const ms_choice_list *choices,
                      const ms_plan *plan)
{
    for (int i = 0; i < choices->num; i++)
        if (!tries(space, plan, choices->of[i]))
            return false;
    return true;
}

bool ms_space_next(const ms_space *space, const ms_choice_list *choices, bool down,
                   ms_plan *plan, bool *begun)
{
    for (int i = 0; !*begun && i < choices->num; i++)
        ms_plan_set(plan, choices->of[i], down ? ms_choice_last(choices->of[i]) : 0);
    bool more = !*begun || next_combination(choices, down, plan);
    *begun = true;
    while (more && !tries_all(space, choices, plan))
        more = next_combination(choices, down, plan);
    return more;
}

void ms_space_copy(const ms_choice_list *choices, const ms_plan *from, ms_plan *to)
{
    for (int i = 0; i < choices->num; i++)
        ms_plan_set(to, choices->of[i], ms_plan_get(from, choices->of[i]));
}

bool ms_space_tries_sharding(const ms_space *space, bool shards, long zero,
                             bool reshard_after_forward)
{
    if (!ms_space_allows(space, MS_CHOOSE_ZERO, zero))
        return false;
    if (zero < 3)
        return shards || zero == 0;
    return shards && ms_space_allows(space, MS_CHOOSE_RESHARD, reshard_after_forward);
}

bool ms_space_tries_layer_mode(const ms_space *space, ms_layer_mode mode)
{
    if (!ms_layer_mode_has_budget(mode))
        return mode != MS_RECOMPUTE_AUTO &&
               ms_space_allows(space, MS_CHOOSE_RECOMPUTE, mode);
    return ms_space_allows(space, MS_CHOOSE_RECOMPUTE, MS_RECOMPUTE_AUTO) &&
           ms_space_allows(space, MS_CHOOSE_RECOMPUTE_BUDGET,
                           mode - ms_layer_mode_of_budget(0));
}

/* ---- meshes ---- */

typedef struct mesh_list {
    const ms_space *space;
    const ms_model *model;
    ms_arena *arena;
    ms_mesh_choice *meshes;
    int num, capacity;
    long refused[MS_NUM_REFUSALS];
    ms_refusal wanted; /* the refusal of which `example` becomes a plan */
    ms_plan *example;  /* NULL: none is wanted */
} mesh_list;

static void append(mesh_list *list, const ms_mesh_choice *mesh)
{
    MS_MAKE_ROOM(list->arena, list->meshes, list->num, list->capacity, 1024);
    list->meshes[list->num++] = *mesh;
}

ms_plan ms_space_plan(const ms_space *space, const ms_mesh_choice *mesh)
{
    ms_plan plan = space->base;
    memcpy(plan.size, mesh->size, sizeof plan.size);
    plan.ep = mesh->ep;
    plan.etp = mesh->etp;
    return plan;
}

/* Adds the mesh to the list if it obeys the rules that depend on the mesh alone. */
static void consider(mesh_list *list, const ms_mesh_choice *mesh)
{
    ms_plan plan = ms_space_plan(list->space, mesh);
    ms_refusal first = MS_LEGAL;
    if (!tries_kv_heads(list->space, &plan, list->model)) {
        list->refused[MS_REFUSE_HEADS]++;
        return;
    }
    for (int method = 0; method < MS_NUM_CP_METHODS; method++) {
        if (!ms_space_tries_cp_method(list->space, mesh->size[MS_CP],
                                      (ms_cp_method)method))
            continue;
        plan.cp_method = (ms_cp_method)method;
        ms_refusal refusal = ms_plan_refusal(&plan, list->model);
        if (refusal == MS_LEGAL) {
            append(list, mesh);
            return;
        }
        first = first == MS_LEGAL ? refusal : first;
        if (list->example != NULL && refusal == list->wanted)
            *list->example = plan;
    }
    if (first != MS_LEGAL)
        list->refused[first]++;
}

static void add_expert_meshes(mesh_list *list, ms_mesh_choice mesh)
{
    const ms_space *space = list->space;
    long experts = list->model->moe.num_experts;
    long ranks = mesh.size[MS_DP_SHARD] * mesh.size[MS_CP] * mesh.size[MS_TP];
    for (mesh.ep = 1; mesh.ep <= (experts > 0 ? experts : 1); mesh.ep++) {
        if ((experts > 0 && experts % mesh.ep != 0) || ranks % mesh.ep != 0 ||
            !ms_space_allows(space, MS_CHOOSE_EP, mesh.ep))
            continue;
        for (int split = 0; split < (experts > 0 && mesh.size[MS_TP] > 1 ? 2 : 1);
             split++) {
            mesh.etp = split ? mesh.size[MS_TP] : 1;
            if (ranks % (mesh.ep * mesh.etp) == 0 &&
                ms_space_allows(space, MS_CHOOSE_ETP, mesh.etp))
                consider(list, &mesh);
        }
    }
}

/* Gives mesh axis `axis` and those after it all sizes whose product is `rest` ranks. */
static void divide(mesh_list *list, ms_mesh_choice *mesh, int axis, long rest)
{
    for (long size = 1; size <= rest; size++) {
        if (rest % size != 0 || !ms_space_allows(list->space, MS_CHOOSE_PP + axis, size))
            continue;
        if (axis == MS_PP && size > list->model->num_layers)
            break;
        mesh->size[axis] = size;
        if (axis == MS_TP) {
            if (size == rest)
                add_expert_meshes(list, *mesh);
        } else {
            divide(list, mesh, axis + 1, rest / size);
        }
    }
}

bool ms_space_refused(const ms_space *space, const ms_model *model, ms_arena *arena,
                      ms_refusal refusal, ms_plan *out)
{
    *out = (ms_plan){0};
    mesh_list list = {.space = space,
                      .model = model,
                      .arena = arena,
                      .wanted = refusal,
                      .example = out};
    ms_mesh_choice mesh = {0};
    divide(&list, &mesh, MS_PP, space->base.gpus);
    return out->gpus > 0;
}

int ms_space_meshes(const ms_space *space, const ms_model *model, ms_arena *arena,
                    ms_mesh_choice **meshes, long refused[MS_NUM_REFUSALS])
{
    mesh_list list = {.space = space, .model = model, .arena = arena};
    ms_mesh_choice mesh = {0};
    divide(&list, &mesh, MS_PP, space->base.gpus);
    *meshes = list.meshes;
    memcpy(refused, list.refused, sizeof list.refused);
    return list.num;
}
