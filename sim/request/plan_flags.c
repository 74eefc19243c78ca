/* The options of a plan, made from the table of its fields (ms_plan_fields). */
#include "sim/request/plan_flags.h"

#include "sim/request/plan_options.h"

#include <pthread.h>

static ms_option option_of(ms_choice choice)
{
    static const ms_option_kind kinds[] = {
        [MS_CHOICE_WHOLE] = MS_OPTION_INTEGER, [MS_CHOICE_NUMBER] = MS_OPTION_QUANTITY,
        [MS_CHOICE_SWITCH] = MS_OPTION_SWITCH, [MS_CHOICE_WORD] = MS_OPTION_CHOICE,
        [MS_CHOICE_SET] = MS_OPTION_CHOICE,    [MS_CHOICE_TEXT] = MS_OPTION_TEXT,
        [MS_CHOICE_LIST] = MS_OPTION_TEXT};
    const ms_plan_field *row = &ms_plan_fields[choice];
    return (ms_option){.kind = kinds[row->kind],
                       .unit = row->in_bytes ? MS_UNIT_BYTES : MS_UNIT_COUNT,
                       .name = row->flag,
                       .offset = offsetof(ms_plan_options, of) +
                                 (size_t)choice * sizeof(ms_plan_option),
                       .value = row->value,
                       .low = row->low,
                       .high = row->flag_high > 0.0 ? row->flag_high : row->high,
                       .above_low = row->above_low,
                       .example = row->in_bytes ? "25 MB" : NULL,
                       .choices = row->words,
                       .find = row->find,
                       .help = row->help};
}

#define IGNORE_RULES_HELP                                                                \
    "predict, simulate: price a plan that the stack's framework refuses, and list the "  \
    "rules that it breaks"

const ms_option ms_ignore_rules_table[] = {
    {.kind = MS_OPTION_FLAG, .name = "--ignore-rules", .help = IGNORE_RULES_HELP},
    {0},
};

static const ms_option others[] = {
    MS_OPT_ROW(MS_OPTION_TEXT, ms_plan_options, plan_file, "--plan", .alias = "--from",
               .value = "FILE",
               .help = "plan to start from: meshsim.plan/1, or a framework's script or "
                       "configuration, as import reads it; flags override it"),
    MS_OPT_FLAG(ms_plan_options, ignore_rules, "--ignore-rules", IGNORE_RULES_HELP),
    MS_OPT_MISTAKE("--dp", "--dp-shard N is data parallelism (plain with --zero 0); "
                           "--dp-replicate N adds replicas"),
    MS_OPT_MISTAKE("--fsdp", "did you mean --dp-shard?"),
    MS_OPT_MISTAKE("--batch",
                   "--global-batch counts sequences per step, --microbatch per pass"),
};
enum {
    NUM_OTHERS = sizeof others / sizeof *others
};

static ms_option table[NUM_OTHERS + MS_NUM_CHOICES + 1]; /* table ends with {0} */

static void fill_table(void)
{
    int num = 0;
    table[num++] = others[0];
    table[num++] = others[1];
    for (int i = 0; i < MS_NUM_CHOICES; i++)
        if (ms_plan_fields[i].flag != NULL)
            table[num++] = option_of((ms_choice)i);
    for (int i = 2; i < NUM_OTHERS; i++)
        table[num++] = others[i];
}

const ms_option *ms_plan_option_table(void)
{
    static pthread_once_t filled = PTHREAD_ONCE_INIT;
    pthread_once(&filled, fill_table);
    return table;
}
