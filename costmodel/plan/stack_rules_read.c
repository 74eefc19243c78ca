/* Reads rules files, and makes the rules of a stack: those of its files, and those that
 * follow from its lists of schedules and of context-parallel methods. */
#include "costmodel/plan/stack_rules.h"

#include "base/paths.h"

#include <assert.h>
#include <string.h>

const char *const ms_architecture_names[] = {"dense", "experts", "mla", "windows",
                                             "mtp",   "mamba",   NULL};

/* ---- files ---- */

typedef struct rule_row {
    const char *rule, *since, *until, *when, *need, *says, *source;
} rule_row;

typedef struct architecture_row {
    int kind;
    const char *since, *until, *source;
} architecture_row;

typedef struct rules_file {
    const char *name, *source, *version;
    ms_list versions, architectures, rules;
} rules_file;

#define ROW_TEXT(member, must, text)                                                     \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = #member, .offset = offsetof(rule_row, member),     \
        .required = (must), .help = (text)                                               \
    }
#define FILE_TEXT(member, text)                                                          \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = #member, .offset = offsetof(rules_file, member),   \
        .required = true, .help = (text)                                                 \
    }

static const ms_field row_fields[] = {
    ROW_TEXT(rule, true, "name of the rule, as messages print it"),
    ROW_TEXT(since, false, "first version with the rule"),
    ROW_TEXT(until, false, "first version without it"),
    ROW_TEXT(when, false, "expression: the plans that the rule is about"),
    ROW_TEXT(need, true, "expression: what must hold for them"),
    ROW_TEXT(says, true, "the rule in words"),
    ROW_TEXT(source, true, "where the framework states or checks it"),
    {0}};
#define ARCHITECTURE_TEXT(member, must, text)                                            \
    {                                                                                    \
        .kind = MS_FIELD_TEXT, .key = #member,                                           \
        .offset = offsetof(architecture_row, member), .required = (must), .help = (text) \
    }

static const ms_field architecture_fields[] = {
    {.kind = MS_FIELD_CHOICE,
     .key = "kind",
     .offset = offsetof(architecture_row, kind),
     .required = true,
     .choices = ms_architecture_names,
     .help = "part of an architecture that the framework trains"},
    ARCHITECTURE_TEXT(since, false, "first version that trains it"),
    ARCHITECTURE_TEXT(until, false, "first version that does not"),
    ARCHITECTURE_TEXT(source, true, "where the framework states it"),
    {0}};
static const ms_field version_fields[] = {{.kind = MS_FIELD_TEXT}};
static const ms_field file_fields[] = {
    FILE_TEXT(name, "name of the rules"),
    FILE_TEXT(source, "the framework's code or documents that the rules were read in"),
    FILE_TEXT(version, "version taken unless another is asked for"),
    {.kind = MS_FIELD_LIST,
     .key = "versions",
     .offset = offsetof(rules_file, versions),
     .required = true,
     .element = version_fields,
     .element_bytes = sizeof(const char *),
     .help = "known versions, oldest first"},
    {.kind = MS_FIELD_LIST,
     .key = "architectures",
     .offset = offsetof(rules_file, architectures),
     .element = architecture_fields,
     .element_bytes = sizeof(architecture_row),
     .help = "parts of architectures that the framework trains, as its code states"},
    {.kind = MS_FIELD_LIST,
     .key = "rules",
     .offset = offsetof(rules_file, rules),
     .required = true,
     .element = row_fields,
     .element_bytes = sizeof(rule_row)},
    {0}};

/* Place of a version in the list of versions, oldest first; MS_EINPUT at `loc`: not
 * listed. */
static ms_status find_version(ms_ctx *cx, ms_loc loc, const rules_file *file,
                              const char *version, int *index)
{
    const char *const *versions = file->versions.rows;
    const char *list = "";
    for (*index = 0; *index < file->versions.num_rows; ++*index) {
        if (strcmp(versions[*index], version) == 0)
            return MS_OK;
        list = ms_arena_printf(cx->arena, "%s%s%s", list, *index == 0 ? "" : ", ",
                               versions[*index]);
    }
    ms_fail(cx, MS_EINPUT, loc, "%s has no version \"%s\"", file->name, version);
    return ms_hint(cx, "use one of %s", list);
}

/* Versions from `since` to before `until`; NULL: no limit. */
typedef struct version_range {
    const char *since, *until;
} version_range;

/* Whether a range has the version with this index. */
static ms_status holds_in(ms_ctx *cx, ms_loc loc, const rules_file *file,
                          version_range range, int version, bool *holds)
{
    int since = 0, until = file->versions.num_rows;
    if (range.since != NULL)
        MS_TRY(find_version(cx, loc, file, range.since, &since));
    if (range.until != NULL)
        MS_TRY(find_version(cx, loc, file, range.until, &until));
    *holds = version >= since && version < until;
    return MS_OK;
}

static ms_status read_row(ms_ctx *cx, ms_loc loc, const rule_row *row, ms_rule *out)
{
    *out = (ms_rule){.name = row->rule,
                     .says = row->says,
                     .source = row->source,
                     .since = row->since,
                     .until = row->until,
                     .when_text = row->when};
    if (row->when != NULL)
        MS_TRY(ms_expression_parse(cx, loc, row->when, ms_rule_variables(), &out->when));
    return ms_expression_parse(cx, loc, row->need, ms_rule_variables(), &out->need);
}

/* MS_EINPUT at `need` if neither expression reads a variable: the rule would have one
 * verdict for all plans, and rules are looked up by their variables. */
static ms_status check_reads(ms_ctx *cx, ms_jval row, const ms_rule *rule)
{
    ms_jval need;
    if ((rule->when.reads | rule->need.reads) != 0)
        return MS_OK;
    if (!ms_json_member(cx, row, "need", &need))
        need = row;
    ms_json_fail(cx, need,
                 "rule \"%s\" reads no variable, so all plans keep it or none does",
                 rule->name);
    return ms_hint(cx, "\"need\" or \"when\" must name one, as in \"pp = 1\"");
}

/* Makes the set's file one with all its rules. */
static void set_file(ms_arena *arena, ms_rule_set *set)
{
    ms_rules_file *one = MS_NEW(arena, ms_rules_file);
    *one = (ms_rules_file){.name = set->name,
                           .source = set->source,
                           .version = set->version,
                           .num_versions = set->num_versions,
                           .versions = set->versions,
                           .num_rules = set->num};
    set->num_files = 1;
    set->files = one;
}

static ms_status read_architectures(ms_ctx *cx, ms_jval root, const rules_file *file,
                                    int version, ms_rule_set *out)
{
    ms_jval list;
    if (!ms_json_member(cx, root, "architectures", &list))
        return MS_OK;
    for (int i = 0; i < file->architectures.num_rows; i++) {
        const architecture_row *row =
            &((const architecture_row *)file->architectures.rows)[i];
        const ms_loc at = ms_json_loc(cx, ms_json_element(cx, list, i));
        bool holds;
        MS_TRY(holds_in(cx, at, file, (version_range){row->since, row->until}, version,
                        &holds));
        if (holds)
            out->trains[row->kind] = row->source;
    }
    return MS_OK;
}

ms_status ms_rule_set_read(ms_ctx *cx, ms_jval root, const char *version,
                           ms_rule_set *out)
{
    rules_file file = {0};
    ms_jval list;
    int index;
    MS_TRY(ms_json_read(cx, root, file_fields, &file));
    const ms_loc loc = version != NULL ? MS_NOWHERE : ms_json_loc(cx, root);
    version = version != NULL ? version : file.version;
    MS_TRY(find_version(cx, loc, &file, version, &index));
    (void)ms_json_member(cx, root, "rules", &list);
    if (file.rules.num_rows > MS_MAX_RULES - 2)
        return ms_json_fail(cx, list, "%d rules, must be at most %d", file.rules.num_rows,
                            MS_MAX_RULES - 2);
    ms_rule *rules = MS_NEW_ARRAY(cx->arena, file.rules.num_rows, ms_rule);
    *out = (ms_rule_set){.name = file.name,
                         .source = file.source,
                         .version = version,
                         .num_versions = file.versions.num_rows,
                         .versions = file.versions.rows,
                         .rules = rules};
    for (int i = 0; i < file.rules.num_rows; i++) {
        const rule_row *row = &((const rule_row *)file.rules.rows)[i];
        const ms_jval element = ms_json_element(cx, list, i);
        const ms_loc at = ms_json_loc(cx, element);
        bool holds;
        MS_TRY(read_row(cx, at, row, &rules[out->num]));
        MS_TRY(check_reads(cx, element, &rules[out->num]));
        MS_TRY(holds_in(cx, at, &file, (version_range){row->since, row->until}, index,
                        &holds));
        out->num += holds;
    }
    set_file(cx->arena, out);
    return read_architectures(cx, root, &file, index, out);
}

/* ---- rules by the lists of a stack ---- */

/* The names of the values that a stack has, joined by commas. */
static const char *have_text(ms_arena *arena, const char *const *names, const bool *has)
{
    const char *text = "";
    for (int i = 0; names[i] != NULL; i++)
        if (has[i])
            text = ms_arena_printf(arena, "%s%s%s", text, text[0] == '\0' ? "" : ", ",
                                   names[i]);
    return text;
}

static bool has_all(const char *const *names, const bool *has)
{
    for (int i = 0; names[i] != NULL; i++)
        if (!has[i])
            return false;
    return true;
}

static void add_rules(ms_arena *arena, const ms_rule_set *more, ms_rule_set *set)
{
    ms_rule *rules = MS_NEW_ARRAY(arena, set->num + more->num, ms_rule);
    for (int i = 0; i < set->num; i++)
        rules[i] = set->rules[i];
    for (int i = 0; i < more->num; i++)
        rules[set->num + i] = more->rules[i];
    set->rules = rules;
    set->num += more->num;
}

/* Adds the rule `row` unless the stack has all values; `needs` follows the listed ones,
 * and stands alone if there are none. */
static ms_status add_list(ms_ctx *cx, rule_row row, const char *listed, ms_rule_set *set)
{
    row.says = listed[0] == '\0' ? row.says
                                 : ms_arena_printf(cx->arena, "%s: %s", row.says, listed);
    row.need = listed[0] == '\0' ? row.need
                                 : ms_arena_printf(cx->arena, "%s in {%s} or %s",
                                                   row.rule, listed, row.need);
    ms_rule rule;
    MS_TRY(read_row(cx, MS_NOWHERE, &row, &rule));
    add_rules(cx->arena, &(ms_rule_set){.num = 1, .rules = &rule}, set);
    return MS_OK;
}

static ms_status add_lists(ms_ctx *cx, const ms_stack *stack, ms_rule_set *set)
{
    const char *source =
        ms_arena_printf(cx->arena, "the list in configs/stacks/%s.json", stack->name);
    const rule_row schedule = {.rule = "schedule",
                               .when = "pp > 1",
                               .need = stack->can_schedule[MS_CUSTOM] ? "schedule_file"
                                                                      : "pp = 1",
                               .says = "pipelines run one of",
                               .source = source};
    const rule_row method = {.rule = "cp_method",
                             .when = "cp > 1",
                             .need = "cp = 1",
                             .says = "context parallelism is by",
                             .source = source};
    if (!has_all(ms_schedule_names, stack->can_schedule))
        MS_TRY(add_list(cx, schedule,
                        have_text(cx->arena, ms_schedule_names, stack->can_schedule),
                        set));
    if (!has_all(ms_cp_method_names, stack->can_cp))
        MS_TRY(add_list(cx, method,
                        have_text(cx->arena, ms_cp_method_names, stack->can_cp), set));
    return MS_OK;
}

static ms_status load_file(ms_ctx *cx, const char *name, const char *version,
                           ms_rule_set *out)
{
    const char *path;
    MS_TRY(ms_config_resolve(cx, "rules", "rules", name, &path));
    ms_jdoc *doc = NULL;
    ms_jval root;
    MS_TRY(ms_json_load(cx, path, &doc, &root));
    ms_status status = ms_rule_set_read(cx, root, version, out);
    ms_json_close(doc);
    return status;
}

/* Adds a file with its rules and architectures, after those of other files. */
static void add_file(ms_arena *arena, const ms_rule_set *more, ms_rule_set *set)
{
    assert(more->num_files == 1 && more->files != NULL);
    ms_rules_file *files = MS_NEW_ARRAY(arena, set->num_files + 1, ms_rules_file);
    for (int i = 0; i < set->num_files; i++)
        files[i] = set->files[i];
    files[set->num_files] = more->files[0];
    files[set->num_files].first_rule = set->num;
    set->files = files;
    set->num_files++;
    for (int i = 0; i < MS_NUM_ARCHITECTURES; i++)
        if (set->trains[i] == NULL)
            set->trains[i] = more->trains[i];
    add_rules(arena, more, set);
}

/* Loads the files that a stack lists, as "NAME@VERSION, NAME". The version asked for with
 * the stack replaces that of the first, after which the set is named. */
static ms_status load_files(ms_ctx *cx, const ms_stack *stack, ms_rule_set *out)
{
    for (const char *at = stack->rules; *at != '\0';) {
        size_t length = strcspn(at, ",");
        char *name = ms_arena_strndup(cx->arena, at, length);
        char *version = strchr(name, '@');
        if (version != NULL)
            *version++ = '\0';
        ms_rule_set one = {0};
        bool is_first = at == stack->rules;
        MS_TRY(load_file(cx, name,
                         is_first && stack->version != NULL ? stack->version : version,
                         &one));
        if (is_first) {
            *out = (ms_rule_set){.name = one.name,
                                 .source = one.source,
                                 .version = one.version,
                                 .num_versions = one.num_versions,
                                 .versions = one.versions};
        }
        add_file(cx->arena, &one, out);
        at += length;
        at += strspn(at, ", ");
    }
    return MS_OK;
}

ms_status ms_rule_set_load(ms_ctx *cx, const ms_stack *stack, ms_rule_set *out)
{
    *out = (ms_rule_set){0};
    if (stack->rules != NULL) {
        MS_TRY(load_files(cx, stack, out));
    } else if (stack->version != NULL) {
        ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                "stack %s has no rules by version, so no version \"%s\"", stack->name,
                stack->version);
        return ms_hint(cx, "--stack %s", stack->name);
    }
    MS_TRY(add_lists(cx, stack, out));
    return out->num <= MS_MAX_RULES ? MS_OK
                                    : ms_fail(cx, MS_EINPUT, MS_NOWHERE,
                                              "stack %s has %d rules, must be at most %d",
                                              stack->name, out->num, MS_MAX_RULES);
}
