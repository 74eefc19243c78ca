/* Published layouts against the rules of their stack's framework. A rule that a layout
 * which ran breaks is wrong, or holds since another version, or the row is misread. */
#ifndef MS_SIM_VALIDATE_RUN_RULES_H
#define MS_SIM_VALIDATE_RUN_RULES_H

#include "sim/validate/pubrun.h"

/* Sets broken_rule of each run that can be predicted; frameworks are taken in the version
 * that their stack names. Errors: as ms_rule_set_load. */
ms_status ms_pubruns_check_rules(ms_ctx *cx, ms_pubruns *runs);

/* Runs of one stack that break one rule. */
typedef struct ms_rule_breach {
    const char *stack, *rule;
    int num_runs;
    const char *first_id;
} ms_rule_breach;

typedef struct ms_rule_breaches {
    int num_checked; /* runs whose stack has rules */
    int num;
    const ms_rule_breach *of; /* (num), in the order of the file */
} ms_rule_breaches;

/* Lists what ms_pubruns_check_rules found. Lives in the arena. */
ms_rule_breaches ms_pubruns_breaches(ms_arena *arena, const ms_pubruns *runs);

/* Writes "rules": {checked, broken: [{stack, rule, runs, first}]}. */
void ms_rule_breaches_write_json(ms_jout *out, const ms_rule_breaches *breaches);

#endif
