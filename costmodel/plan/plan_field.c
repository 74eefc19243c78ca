/* Functions that use the rows of the table of choices (plan_table.c). */
#include "costmodel/plan/plan_field.h"

#include <string.h>

static const char *const switch_words[] = {"off", "on", NULL};

/* ---- one choice ---- */

static const void *at(const ms_plan *plan, ms_choice choice)
{
    return (const char *)plan + ms_plan_fields[choice].offset;
}

long ms_plan_get(const ms_plan *plan, ms_choice choice)
{
    const void *value = at(plan, choice);
    ms_choice_kind kind = ms_plan_fields[choice].kind;
    return kind == MS_CHOICE_WHOLE                           ? *(const long *)value
           : kind == MS_CHOICE_SWITCH                        ? *(const bool *)value
           : kind == MS_CHOICE_WORD || kind == MS_CHOICE_SET ? *(const int *)value
                                                             : 0;
}

void ms_plan_set(ms_plan *plan, ms_choice choice, long value)
{
    void *target = (char *)plan + ms_plan_fields[choice].offset;
    if (choice == MS_CHOOSE_SCHEDULE)
        ms_plan_set_schedule(plan, (ms_schedule_kind)value);
    else if (ms_plan_fields[choice].kind == MS_CHOICE_WHOLE)
        *(long *)target = value;
    else if (ms_plan_fields[choice].kind == MS_CHOICE_SWITCH)
        *(bool *)target = value != 0;
    else if (ms_plan_fields[choice].kind == MS_CHOICE_WORD ||
             ms_plan_fields[choice].kind == MS_CHOICE_SET)
        *(int *)target = (int)value;
}

void ms_plan_reset(ms_plan *plan, ms_choice choice)
{
    if (ms_plan_fields[choice].kind == MS_CHOICE_NUMBER)
        *(double *)((char *)plan + ms_plan_fields[choice].offset) =
            ms_plan_fields[choice].plain;
    else
        ms_plan_set(plan, choice, (long)ms_plan_fields[choice].plain);
}

void ms_plan_make_plain(ms_plan *plan)
{
    for (int i = 0; i < MS_NUM_CHOICES; i++)
        if (ms_plan_fields[i].search != MS_SEARCH_KEEPS)
            ms_plan_reset(plan, (ms_choice)i);
    plan->num_stage_layers = 0;
    plan->layers_per_stage = NULL;
}

bool ms_plan_matters(const ms_plan *plan, ms_choice choice)
{
    return ms_plan_fields[choice].matters == NULL || ms_plan_fields[choice].matters(plan);
}

long ms_plan_usual(const ms_plan *plan, const ms_stack *stack, ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    return field->usual == NULL ? (long)field->plain : field->usual(plan, stack);
}

const char *const *ms_choice_words(ms_choice choice)
{
    return ms_plan_fields[choice].kind == MS_CHOICE_SWITCH ? switch_words
                                                           : ms_plan_fields[choice].words;
}

long ms_choice_last(ms_choice choice)
{
    const char *const *words = ms_choice_words(choice);
    long last = 0;
    while (words[last + 1] != NULL)
        last++;
    return last;
}

static const char *set_text(ms_arena *arena, const char *const *words, long set)
{
    const char *text = "";
    for (int i = 0; words[i] != NULL; i++)
        if ((set >> i & 1) != 0)
            text = ms_arena_printf(arena, "%s%s%s", text, *text == '\0' ? "" : ",",
                                   words[i]);
    return text;
}

const char *ms_choice_value_text(ms_arena *arena, ms_choice choice, long value)
{
    const char *const *words = ms_choice_words(choice);
    if (ms_plan_fields[choice].kind == MS_CHOICE_SET)
        return set_text(arena, words, value);
    return words != NULL ? words[value] : ms_arena_printf(arena, "%ld", value);
}

/* Text of a choice that is a list: "pp,dp_replicate,dp_shard,cp,tp" or "20,20,20,20" */
static const char *list_text(ms_arena *arena, const ms_plan *plan, ms_choice choice)
{
    bool is_order = choice == MS_CHOOSE_ORDER;
    long num = is_order ? MS_NUM_PLAN_AXES : plan->num_stage_layers;
    const char *text = "";
    for (long i = 0; i < num; i++) {
        const char *comma = i == 0 ? "" : ",";
        text = is_order ? ms_arena_printf(arena, "%s%s%s", text, comma,
                                          ms_plan_axis_names[plan->order[i]])
                        : ms_arena_printf(arena, "%s%s%ld", text, comma,
                                          plan->layers_per_stage[i]);
    }
    return text;
}

const char *ms_plan_value_text(ms_arena *arena, const ms_plan *plan, ms_choice choice)
{
    ms_choice_kind kind = ms_plan_fields[choice].kind;
    if (choice == MS_CHOOSE_SCHEDULE)
        return ms_plan_schedule_name(plan);
    if (kind == MS_CHOICE_NUMBER) {
        const char *text = ms_json_number_text(*(const double *)at(plan, choice),
                                               ms_arena_alloc(arena, 32));
        return ms_plan_fields[choice].in_bytes ? ms_arena_printf(arena, "%s B", text)
                                               : text;
    }
    if (kind == MS_CHOICE_TEXT)
        return *(const char *const *)at(plan, choice);
    return kind == MS_CHOICE_LIST
               ? list_text(arena, plan, choice)
               : ms_choice_value_text(arena, choice, ms_plan_get(plan, choice));
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_stage_layers(const ms_plan *a, const ms_plan *b)
{
    return a->num_stage_layers == b->num_stage_layers &&
           (a->num_stage_layers == 0 ||
            memcmp(a->layers_per_stage, b->layers_per_stage,
                   (size_t)a->num_stage_layers * sizeof(long)) == 0);
}

bool ms_plan_same(const ms_plan *a, const ms_plan *b, ms_choice choice)
{
    ms_choice_kind kind = ms_plan_fields[choice].kind;
    if (choice == MS_CHOOSE_ORDER)
        return memcmp(a->order, b->order, sizeof a->order) == 0;
    if (choice == MS_CHOOSE_STAGE_LAYERS)
        return same_stage_layers(a, b);
    if (kind == MS_CHOICE_NUMBER)
        return *(const double *)at(a, choice) == *(const double *)at(b, choice);
    if (kind == MS_CHOICE_TEXT)
        return same_text(*(const char *const *)at(a, choice),
                         *(const char *const *)at(b, choice));
    return ms_plan_get(a, choice) == ms_plan_get(b, choice) &&
           (choice != MS_CHOOSE_SCHEDULE ||
            same_text(a->schedule_file, b->schedule_file));
}

bool ms_plan_same_workload(const ms_plan *a, const ms_plan *b)
{
    for (ms_choice i = MS_CHOOSE_SEQUENCE_LENGTH; i < MS_NUM_CHOICES; i++) {
        /* programs have the balance over cp in their keys (ms_bill_key) */
        bool is_budget = i == MS_CHOOSE_RECOMPUTE_BUDGET;
        bool is_kept = ms_plan_fields[i].search == MS_SEARCH_KEEPS &&
                       i != MS_CHOOSE_STACK && i != MS_CHOOSE_CP_BALANCE;
        if ((is_kept || is_budget) && !ms_plan_same(a, b, i))
            return false;
    }
    return true;
}

/* Whether two plans are equal in all choices that plan files store. */
bool ms_plan_equal(const ms_plan *a, const ms_plan *b)
{
    for (ms_choice i = 0; i < MS_NUM_CHOICES; i++) {
        bool unwritten =
            i == MS_CHOOSE_PROFILE ||
            (ms_plan_fields[i].json_plain == MS_PLAIN_OMITTED && !ms_plan_matters(a, i));
        if (!unwritten && !ms_plan_same(a, b, i))
            return false;
    }
    return true;
}

/* ---- the flags that give a plan ---- */

bool ms_plan_is_plain(const ms_plan *plan, ms_choice choice)
{
    ms_plan plain = ms_plan_default(plan->gpus);
    if (ms_plan_fields[choice].kind != MS_CHOICE_TEXT)
        ms_plan_reset(&plain, choice);
    return ms_plan_same(plan, &plain, choice);
}

/* Whether a choice whose default needs no stack differs from its command-line default. */
static bool is_not_default(const ms_plan *plan, ms_choice choice)
{
    return ms_plan_get(plan, choice) != ms_plan_usual(plan, NULL, choice);
}

bool ms_plan_needs_flag(const ms_plan *plan, ms_choice choice)
{
    const ms_plan_field *field = &ms_plan_fields[choice];
    if ((field->kind == MS_CHOICE_NUMBER || field->kind == MS_CHOICE_SET) &&
        !ms_plan_matters(plan, choice))
        return false;
    switch (field->flag_rule) {
    case MS_FLAG_UNUSUAL:
        return !ms_plan_is_plain(plan, choice) ||
               (field->usual != NULL && is_not_default(plan, choice));
    case MS_FLAG_NOT_DEFAULT:
        return is_not_default(plan, choice);
    case MS_FLAG_IN_EFFECT:
        return ms_plan_matters(plan, choice);
    case MS_FLAG_ALWAYS:
        return true;
    case MS_FLAG_NEVER:
        break;
    }
    return false;
}
