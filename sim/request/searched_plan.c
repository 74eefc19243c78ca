#include "sim/request/searched_plan.h"

#include "costmodel/plan/plan_field.h"

#include <string.h>

static bool is_one_of(const char *name, const char *const *names)
{
    for (; names != NULL && *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* The choice of a flag; MS_NUM_CHOICES: the flag states no choice. */
static ms_choice choice_of(const char *flag)
{
    ms_choice choice = 0;
    while (choice < MS_NUM_CHOICES && (ms_plan_fields[choice].flag == NULL ||
                                       strcmp(ms_plan_fields[choice].flag, flag) != 0))
        choice++;
    return choice;
}

/* Whether a flag is of an optional choice that searches keep, such as --lora-rank. */
static bool is_optional(const char *flag)
{
    ms_choice choice = choice_of(flag);
    return choice >= MS_CHOOSE_CP_BALANCE && choice < MS_NUM_CHOICES &&
           choice != MS_CHOOSE_COMPUTE && choice != MS_CHOOSE_STACK &&
           ms_plan_fields[choice].search == MS_SEARCH_KEEPS;
}

static const char *hint_for(ms_arena *arena, const char *flag)
{
    ms_choice choice = choice_of(flag);
    if (choice == MS_NUM_CHOICES || ms_plan_fields[choice].search == MS_SEARCH_KEEPS)
        return "searches are not asked for it; \"meshsim predict\" prices a plan with it";
    if (ms_plan_fields[choice].search == MS_SEARCH_REFUSES)
        return "no search makes such plans; \"meshsim predict\" prices one";
    return ms_arena_printf(
        arena, "the searches choose it; --limit narrows them: --limit %s=%s",
        ms_plan_fields[choice].name,
        ms_choice_words(choice) != NULL ? ms_choice_words(choice)[ms_choice_last(choice)]
                                        : "2");
}

const ms_option *ms_searched_plan_table(ms_ctx *cx, const char *const *kept,
                                        const char *const *own)
{
    const ms_option *all = ms_plan_option_table();
    int num = 0, num_taken = 0;
    while (all[num].kind != MS_OPTION_END)
        num++;
    ms_option *table = MS_NEW_ARRAY(cx->arena, num + 1, ms_option);
    for (int i = 0; i < num; i++) {
        bool keep = kept == NULL || all[i].kind == MS_OPTION_MISTAKE ||
                    is_one_of(all[i].name, kept) || is_optional(all[i].name);
        if (is_one_of(all[i].name, own))
            continue;
        table[num_taken++] = keep ? all[i]
                                  : (ms_option)MS_OPT_MISTAKE(
                                        all[i].name, hint_for(cx->arena, all[i].name));
    }
    return table;
}

ms_status ms_plan_limits_read(ms_ctx *cx, const ms_opt_list *limits,
                              const ms_memory_options *memory, ms_plan_limits *out)
{
    int capacity = 0;
    for (int i = 0; i < limits->num_texts; i++)
        for (const char *c = limits->texts[i]; c != NULL; c = strchr(c + 1, ','))
            capacity++;
    const char **texts = MS_NEW_ARRAY(cx->arena, capacity, const char *);
    *out = (ms_plan_limits){.texts = texts};
    for (int i = 0; i < limits->num_texts; i++) {
        const char *rest = limits->texts[i], *item;
        while ((item = ms_list_next(cx->arena, &rest)) != NULL)
            texts[out->num++] = item;
    }
    return ms_memory_options_rule(cx, memory, &out->memory);
}
