#include "cli/options/searched_plan.h"

#include "costmodel/plan/plan_field.h"

#include <string.h>

static bool is_one_of(const char *name, const char *const *names)
{
    for (; names != NULL && *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Whether a flag is of an optional choice that searches keep, such as --lora-rank. */
static bool is_optional(const char *flag)
{
    for (ms_choice i = MS_CHOOSE_PARAM_DTYPE; i < MS_NUM_CHOICES; i++)
        if (i != MS_CHOOSE_STACK && ms_plan_fields[i].search == MS_SEARCH_KEEPS &&
            strcmp(ms_plan_fields[i].flag, flag) == 0)
            return true;
    return false;
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
        table[num_taken++] =
            keep ? all[i]
                 : (ms_option)MS_OPT_MISTAKE(
                       all[i].name,
                       "the searches choose it; --limit narrows them: --limit tp=8");
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
