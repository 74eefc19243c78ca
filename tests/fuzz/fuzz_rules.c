/* Fuzzes the reader of rules files and their expressions: nothing crashes, an accepted
 * file judges facts at the ends of long, and its broken rules are shown with values. */
#include "costmodel/plan/stack_rules.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* Facts that are all `value`, or the last word, the name of none included, if that is
 * less. */
static ms_facts facts_of(long value)
{
    ms_facts facts = {{0}};
    const ms_variable *variables = ms_rule_variables();
    for (int i = 0; i < MS_NUM_FACTS; i++) {
        const char *const *words = variables[i].words;
        long last = 0;
        while (words != NULL && words[last] != NULL)
            last++;
        facts.of[i] = words == NULL ? value : value < 0 ? 0 : value < last ? value : last;
    }
    return facts;
}

static void judge(ms_arena *arena, const ms_rule_set *set, long value)
{
    ms_facts facts = facts_of(value);
    const ms_rule *rule = ms_rule_broken(set, &facts, MS_ALL_VARIABLES, MS_ALL_VARIABLES);
    if (rule == NULL)
        return;
    require(ms_rule_values_text(arena, rule, &facts)[0] != '\0');
    ms_variables reads = rule->when.reads | rule->need.reads;
    require(ms_rule_broken(set, &facts, reads, reads) != NULL);
    require(ms_rule_broken(set, &facts, MS_ALL_VARIABLES, 0) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const long values[] = {0, 1, 2, 7, -1, LONG_MAX, LONG_MIN};
    ms_ctx cx = {.arena = ms_arena_open()};
    ms_jdoc *doc = NULL;
    ms_jval root;
    ms_rule_set set;
    ms_status status = ms_json_parse(&cx, "fuzz", (const char *)data, size, &doc, &root);
    if (status == MS_OK)
        status = ms_rule_set_read(&cx, root, NULL, &set);
    require((status == MS_OK) == (cx.num_errors == 0));
    ms_json_close(doc);
    for (size_t i = 0; status == MS_OK && i < sizeof values / sizeof *values; i++)
        judge(cx.arena, &set, values[i]);
    ms_arena_close(cx.arena);
    return 0;
}
