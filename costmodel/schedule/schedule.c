/* The table of schedule families, where their stages are placed, and how the action lists
 * of a family become a schedule. */
#include "costmodel/schedule/schedule_priv.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#define MAX_STAGES 32767 /* ms_action.stage is a short */

static const ms_schedule_family *const families[MS_NUM_SCHEDULES] = {
#define FAMILY(kind, name, family) [kind] = &ms_family_##family,
    MS_SCHEDULES(FAMILY)
#undef FAMILY
        [MS_CUSTOM] = &ms_family_custom,
};

const char *const ms_schedule_names[] = {
#define NAME(kind, name, family) name,
    MS_SCHEDULES(NAME)
#undef NAME
        NULL};

/* ---- names ---- */

static bool is_hyphen(char c)
{
    return c == '-' || c == '_';
}

static bool same_word(const char *a, const char *b)
{
    for (;;) {
        a += is_hyphen(*a);
        b += is_hyphen(*b);
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (*a == '\0')
            return true;
        a++;
        b++;
    }
}

static bool is_called(ms_schedule_kind kind, const char *text)
{
    if (same_word(text, ms_schedule_names[kind]))
        return true;
    for (const char *const *alias = families[kind]->aliases; *alias != NULL; alias++)
        if (same_word(text, *alias))
            return true;
    return false;
}

bool ms_schedule_is_file(const char *word)
{
    size_t length = strlen(word);
    return length > 4 && strcmp(word + length - 4, ".csv") == 0;
}

bool ms_schedule_parse(const char *text, ms_schedule_kind *out)
{
    for (ms_schedule_kind kind = 0; kind < MS_CUSTOM; kind++) {
        if (is_called(kind, text)) {
            *out = kind;
            return true;
        }
    }
    return false;
}

/* ---- abilities of families ---- */

ms_schedule_traits ms_schedule_traits_of(ms_schedule_kind kind)
{
    return families[kind]->traits;
}

int ms_schedule_default_virtual(ms_schedule_kind kind, long num_ranks)
{
    ms_schedule_traits traits = ms_schedule_traits_of(kind);
    int most = num_ranks == 1 && traits.least_virtual == 1 ? 1 : 2;
    return traits.most_virtual == 1 ? 1 : most;
}

/* ---- where stages live ---- */

ms_stage_placement ms_schedule_placement(ms_schedule_kind kind)
{
    return families[kind]->traits.placement;
}

int ms_schedule_chunks(const ms_schedule_shape *shape)
{
    return ms_schedule_placement(shape->kind) == MS_PLACE_BOTH_WAYS
               ? 2
               : shape->virtual_stages;
}

int ms_schedule_model_stages(const ms_schedule_shape *shape)
{
    return shape->num_ranks * shape->virtual_stages;
}

int ms_schedule_stages(const ms_schedule_shape *shape)
{
    return shape->num_ranks * ms_schedule_chunks(shape);
}

/* Whether stages s >= p are on ranks p-1 .. 0 (V, DualPipe), not 0 .. p-1 (loop). */
static bool turns_round(const ms_schedule_shape *shape)
{
    return ms_schedule_placement(shape->kind) != MS_PLACE_LOOP;
}

/* ---- stages of a table: few, so linear searches suffice ---- */

static int table_chunk(const ms_schedule_table *table, int stage)
{
    int chunk = 0;
    for (int s = 0; s < stage; s++)
        chunk += table->rank_of_stage[s] == table->rank_of_stage[stage];
    return chunk;
}

static int table_stage(const ms_schedule_table *table, int rank, int chunk)
{
    for (int s = 0; s < table->num_stages; s++)
        if (table->rank_of_stage[s] == rank && chunk-- == 0)
            return s;
    assert(!"a rank has as many chunks as the others");
    return 0;
}

int ms_schedule_stage(const ms_schedule_shape *shape, int rank, int chunk)
{
    if (shape->table != NULL)
        return table_stage(shape->table, rank, chunk);
    int p = shape->num_ranks;
    bool back = turns_round(shape) && chunk % 2 == 1;
    return chunk * p + (back ? p - 1 - rank : rank);
}

int ms_schedule_rank(const ms_schedule_shape *shape, int stage)
{
    if (shape->table != NULL)
        return shape->table->rank_of_stage[stage];
    int p = shape->num_ranks, inside = stage % p;
    bool back = turns_round(shape) && stage / p % 2 == 1;
    return back ? p - 1 - inside : inside;
}

int ms_schedule_chunk(const ms_schedule_shape *shape, int stage)
{
    if (shape->table != NULL)
        return table_chunk(shape->table, stage);
    return stage / shape->num_ranks;
}

int ms_schedule_model_stage(const ms_schedule_shape *shape, int stage)
{
    return ms_schedule_placement(shape->kind) == MS_PLACE_BOTH_WAYS
               ? stage % shape->num_ranks
               : stage;
}

int ms_schedule_stage_microbatches(const ms_schedule_shape *shape)
{
    bool both = ms_schedule_placement(shape->kind) == MS_PLACE_BOTH_WAYS;
    return both ? shape->num_microbatches / 2 : shape->num_microbatches;
}

/* ---- allowed shapes ---- */

static const char *virtual_objection(const ms_schedule_shape *shape,
                                     const ms_schedule_traits *traits)
{
    if (shape->virtual_stages < traits->least_virtual)
        return traits->placement == MS_PLACE_V
                   ? "this schedule has 2 virtual stages per rank"
                   : "an interleaved schedule needs at least 2 virtual stages per rank";
    if (traits->most_virtual > 0 && shape->virtual_stages > traits->most_virtual)
        return traits->most_virtual == 1 ? "this schedule has 1 virtual stage per rank"
                                         : "this schedule has 2 virtual stages per rank";
    if (shape->group != 0 && !traits->groups)
        return "only interleaved schedules have a micro-batch group";
    if (shape->memory_limit != 0.0 && !traits->limits_memory)
        return "only zb-auto takes a memory limit";
    return NULL;
}

static const char *objection(const ms_schedule_shape *shape)
{
    const ms_schedule_family *family = families[shape->kind];
    if (shape->num_ranks < 1)
        return "a schedule needs at least 1 pipeline rank";
    if (shape->num_microbatches < 1)
        return "a schedule needs at least 1 micro-batch";
    if (shape->virtual_stages < 1)
        return "a schedule needs at least 1 virtual stage per rank";
    if ((long)shape->num_ranks * shape->virtual_stages > MAX_STAGES / 2)
        return "a schedule has at most 16383 stages";
    const char *found = virtual_objection(shape, &family->traits);
    if (found == NULL && family->objection != NULL)
        found = family->objection(shape);
    return found == NULL && !ms_schedule_can_condense(shape) ? ms_too_many_actions
                                                             : found;
}

bool ms_schedule_allows(const ms_schedule_shape *shape, const char **why)
{
    const char *found = objection(shape);
    if (why != NULL)
        *why = found;
    return found == NULL;
}

int ms_schedule_group(const ms_schedule_shape *shape)
{
    if (shape->group > 0)
        return shape->group;
    int rounds = shape->num_microbatches / shape->num_ranks;
    return shape->num_microbatches / (rounds > 1 ? rounds : 1);
}

/* ---- the lists ---- */

void ms_action_push(ms_action_list *list, ms_action action)
{
    MS_MAKE_ROOM(list->arena, list->actions, list->num, list->capacity, 64);
    list->actions[list->num++] = action;
}

void ms_action_add(ms_action_list *list, ms_action_kind kind, int stage, int microbatch)
{
    ms_action_push(list, (ms_action){.kind = (unsigned char)kind,
                                     .stage = (short)stage,
                                     .microbatch = microbatch});
}

void ms_action_add_pair(ms_action_list *list, int stage, int microbatch,
                        int backward_stage, int backward_microbatch)
{
    ms_action_push(list, (ms_action){.kind = MS_OVERLAP,
                                     .stage = (short)stage,
                                     .microbatch = microbatch,
                                     .backward_stage = (short)backward_stage,
                                     .backward_microbatch = backward_microbatch});
}

/* Joins the ranks' action lists into one array. */
static void join_lists(ms_arena *arena, const ms_action_list *lists,
                       ms_schedule *schedule)
{
    int num_ranks = schedule->shape.num_ranks;
    int *first_action = MS_NEW_ARRAY(arena, num_ranks + 1, int);
    for (int r = 0; r < num_ranks; r++)
        first_action[r + 1] = first_action[r] + lists[r].num;
    ms_action *actions = MS_NEW_ARRAY(arena, first_action[num_ranks], ms_action);
    for (int r = 0; r < num_ranks; r++)
        if (lists[r].num > 0)
            memcpy(actions + first_action[r], lists[r].actions,
                   (size_t)lists[r].num * sizeof *actions);
    schedule->first_action = first_action;
    schedule->actions = actions;
}

/* A schedule of the shape without lists. */
static ms_schedule *open_schedule(ms_arena *arena, const ms_schedule_shape *shape)
{
    ms_schedule *schedule = MS_NEW(arena, ms_schedule);
    schedule->shape = *shape;
    schedule->num_stages = ms_schedule_stages(shape);
    schedule->num_chunks = ms_schedule_chunks(shape);
    schedule->num_alike = 1;
    return schedule;
}

ms_rank_actions ms_schedule_rank_actions(const ms_schedule *schedule, int rank,
                                         ms_action_list *list)
{
    if (schedule->actions == NULL) {
        list->num = 0;
        families[schedule->shape.kind]->fill_rank(&schedule->shape, rank, list);
        return (ms_rank_actions){list->actions, list->num};
    }
    int first = schedule->first_action[rank], end = schedule->first_action[rank + 1];
    return (ms_rank_actions){schedule->actions + first, end - first};
}

/* Makes a schedule that has only the ranks' action lists. */
static ms_schedule *make_lists(ms_arena *arena, const ms_schedule_shape *shape)
{
    ms_schedule *schedule = open_schedule(arena, shape);
    ms_arena *scratch = ms_arena_open();
    ms_action_list *lists = MS_NEW_ARRAY(scratch, shape->num_ranks, ms_action_list);
    for (int r = 0; r < shape->num_ranks; r++)
        lists[r].arena = scratch;
    const ms_schedule_family *family = families[shape->kind];
    if (family->fill != NULL)
        family->fill(shape, scratch, lists);
    for (int r = 0; r < shape->num_ranks && family->fill_rank != NULL; r++)
        family->fill_rank(shape, r, &lists[r]);
    join_lists(arena, lists, schedule);
    ms_arena_close(scratch);
    return schedule;
}

ms_schedule *ms_schedule_outline(ms_arena *arena, const ms_schedule_shape *shape)
{
    if (families[shape->kind]->fill_rank == NULL)
        return make_lists(arena, shape);
    ms_schedule *outline = open_schedule(arena, shape);
    if (ms_schedule_traits_of(shape->kind).keeps_all) {
        outline->num_alike = shape->num_microbatches;
        outline->shape.num_microbatches = 1;
    }
    return outline;
}

/* Adds slots and edges; the action lists must not deadlock. */
static ms_schedule *complete(ms_arena *arena, ms_schedule *schedule)
{
    ms_schedule_find_edges(arena, schedule);
    bool ends = ms_schedule_find_slots(arena, schedule, NULL);
    assert(ends);
    (void)ends;
    return schedule;
}

ms_schedule *ms_schedule_make(ms_arena *arena, const ms_schedule_shape *shape)
{
    assert(ms_schedule_allows(shape, NULL) && ms_schedule_is_listed(shape));
    return complete(arena, make_lists(arena, shape));
}

ms_status ms_schedule_open(ms_ctx *cx, ms_arena *arena, const ms_schedule_shape *shape,
                           ms_loc loc, const ms_schedule **out)
{
    ms_schedule *schedule = make_lists(arena, shape);
    MS_TRY(ms_schedule_check(cx, schedule, loc));
    *out = complete(arena, schedule);
    return MS_OK;
}
