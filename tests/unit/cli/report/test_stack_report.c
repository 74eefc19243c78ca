/* The report on a stack: keys of JSON format meshsim.stack/1, rules by version, and which
 * conventions and coefficients are listed. */
#include "cli/report/stack_report.h"

#include "base/paths.h"
#include "tests/support/json_values.h"
#include "tests/test.h"

#include <string.h>

static ms_stack_report report_on(ms_ctx *cx, const char *name)
{
    ms_stack_report report = {0};
    ASSERT_OK(ms_stack_load(cx, name, &report.stack), cx);
    ASSERT_OK(ms_rule_set_load(cx, report.stack, &report.rules), cx);
    return report;
}

static ms_jval json_of(ms_ctx *cx, const ms_stack_report *report, ms_jdoc **doc)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_jout json = ms_jout_open(file);
    ms_stack_report_write_json(&json, cx->arena, report);
    ms_jout_close(&json);
    return test_json(cx, file, doc);
}

/* The element of a list whose member `key` is `name`; fails the test if none is. */
static ms_jval row_named(ms_ctx *cx, ms_jval list, const char *key, const char *name)
{
    for (int i = 0; i < ms_json_length(list); i++)
        if (strcmp(test_text(cx, ms_json_element(cx, list, i), key), name) == 0)
            return ms_json_element(cx, list, i);
    fail_msg("no row \"%s\"", name);
    return list;
}

static void every_stack_states_its_sources(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const char *const *names;
    int num;
    ASSERT_OK(ms_config_names(cx, "stacks", &names, &num), cx);
    for (int i = 0; i < num; i++) {
        const ms_stack_report report = report_on(cx, names[i]);
        ms_jdoc *doc;
        ms_jval root = json_of(cx, &report, &doc);
        ASSERT_TEXT(test_text(cx, root, "schema"), "meshsim.stack/1");
        ASSERT_TEXT(test_text(cx, root, "name"), names[i]);
        ms_jval rules = test_member(cx, root, "rules"), figures;
        ASSERT_INT(ms_json_length(rules), report.rules.num);
        for (int k = 0; k < report.rules.num; k++)
            assert_true(test_text(cx, ms_json_element(cx, rules, k), "source")[0] !=
                        '\0');
        figures = test_member(cx, root, "coefficients");
        assert_true(ms_json_length(figures) >= 20);
        for (int k = 0; k < ms_json_length(figures); k++)
            assert_true(test_text(cx, ms_json_element(cx, figures, k), "from")[0] !=
                        '\0');
        ms_json_close(doc);
    }
}

static void rules_and_coefficients_are_those_of_the_file(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack_report report = report_on(cx, "megatron@0.12");
    ms_jdoc *doc;
    ms_jval root = json_of(cx, &report, &doc), rules = test_member(cx, root, "rules");
    ASSERT_TEXT(test_text(cx, root, "version"), "0.12");
    ASSERT_TEXT(test_text(cx, row_named(cx, rules, "rule", "kv_heads"), "until"), "0.16");
    ASSERT_TEXT(test_text(cx, row_named(cx, rules, "rule", "kv_heads"), "when"),
                "not mla");
    ASSERT_TEXT(test_text(cx, row_named(cx, rules, "rule", "zero"), "since"), "0.12");
    ms_jval moments =
        row_named(cx, test_member(cx, root, "coefficients"), "name", "moment_bytes");
    ASSERT_TEXT(test_text(cx, moments, "from"), "spec");
    ASSERT_NEAR(report.stack->moment_bytes.value, 8.0, 0);
    ms_json_close(doc);
}

static const char *printed(ms_ctx *cx, const char *stack)
{
    const ms_stack_report report = report_on(cx, stack);
    FILE *file = tmpfile();
    assert_non_null(file);
    ms_stack_report_print(file, cx->arena, &report);
    return test_read_back(cx->arena, file);
}

static void every_rules_file_has_its_version(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack_report report = report_on(cx, "nemo@0.14");
    ms_jdoc *doc;
    ms_jval root = json_of(cx, &report, &doc),
            files = test_member(cx, root, "rules_files");
    ASSERT_INT(ms_json_length(files), 2);
    ms_jval core = row_named(cx, files, "name", "megatron");
    ms_jval bridge = row_named(cx, files, "name", "megatron-bridge");
    ASSERT_TEXT(test_text(cx, core, "version"), "0.14");
    ASSERT_TEXT(test_text(cx, bridge, "version"), "0.7");
    ASSERT_INT(ms_json_length(test_member(cx, bridge, "versions")), 1);
    ms_json_close(doc);
    const char *text = printed(cx, "nemo@0.14");
    assert_non_null(strstr(text, "megatron@0.14, megatron-bridge@0.7\n"));
    assert_non_null(strstr(text, "rules of megatron@0.14, read in"));
    assert_non_null(strstr(text, "rules of megatron-bridge@0.7, read in"));
}

static void architectures_have_their_sources(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack_report report = report_on(cx, "nemo");
    ms_jdoc *doc;
    ms_jval list = test_member(cx, json_of(cx, &report, &doc), "architectures");
    ASSERT_TEXT(test_text(cx, row_named(cx, list, "kind", "experts"), "source"),
                "arguments.py, --num-experts");
    ms_json_close(doc);
    assert_non_null(strstr(printed(cx, "nemo"), "not stated, and not refused: Mamba-2"));
    assert_non_null(strstr(printed(cx, "torchtitan"), "multi-token prediction, Mamba-2"));
    assert_null(strstr(printed(cx, "torchtitan@main"), "refused: multi-token"));
    assert_non_null(strstr(printed(cx, "torchtune"), "all that meshsim knows\n"));
}

static bool has_rule(const ms_rule_set *rules, const char *name)
{
    for (int i = 0; i < rules->num; i++)
        if (strcmp(rules->rules[i].name, name) == 0)
            return true;
    return false;
}

static void a_version_has_its_own_rules(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack_report old = report_on(cx, "megatron@0.12");
    const ms_stack_report new = report_on(cx, "megatron");
    assert_true(has_rule(&old.rules, "kv_heads") && has_rule(&old.rules, "layers"));
    assert_false(has_rule(&new.rules, "kv_heads") || has_rule(&new.rules, "layers"));
    ASSERT_TEXT(new.rules.versions[new.rules.num_versions - 1], new.rules.version);
    ASSERT_INT(old.rules.num_versions, new.rules.num_versions);
}

static void defaults_are_the_stacks_own(void **state)
{
    (void)state;
    static const struct {
        const char *stack, *cp_method, *recompute;
    } cases[] = {{"megatron", "ring", "none"},
                 {"generic", "all-gather", "none"},
                 {"torchtitan", "ring", "per-op"},
                 {"deepspeed", "ulysses", "none"}};
    ms_ctx *cx = test_cx();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ms_stack_report report = report_on(cx, cases[i].stack);
        ms_jdoc *doc;
        ms_jval defaults = test_member(cx, json_of(cx, &report, &doc), "defaults");
        ASSERT_TEXT(test_text(cx, defaults, "cp_method"), cases[i].cp_method);
        ASSERT_TEXT(test_text(cx, defaults, "recompute"), cases[i].recompute);
        ASSERT_TEXT(test_text(cx, defaults, "schedule"), "1f1b");
        ms_json_close(doc);
    }
}

static void switches_that_are_off_are_not_listed(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ms_stack stack = *report_on(cx, "generic").stack;
    const ms_stack_switch *list;
    stack.casts_once = stack.counts_context = false;
    ASSERT_INT(ms_stack_switches(cx->arena, &stack, &list), 1);
    ASSERT_TEXT(list[0].key, "regather");
}

static void every_alias_names_a_stack(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_stack_report report = report_on(cx, "mcore@0.12");
    ASSERT_TEXT(report.stack->name, "megatron");
    ASSERT_TEXT(report.rules.version, "0.12");
    const char *const *names, *const *aliases;
    int num, num_aliases, sum = 0;
    ASSERT_OK(ms_config_names(cx, "stacks", &names, &num), cx);
    for (int i = 0; i < num; i++) {
        ASSERT_OK(ms_config_aliases(cx, "stacks", names[i], &aliases, &num_aliases), cx);
        for (int k = 0; k < num_aliases; k++)
            ASSERT_TEXT(report_on(cx, aliases[k]).stack->name, names[i]);
        sum += num_aliases;
    }
    assert_true(sum >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_stack_states_its_sources),
        cmocka_unit_test(rules_and_coefficients_are_those_of_the_file),
        cmocka_unit_test(every_rules_file_has_its_version),
        cmocka_unit_test(architectures_have_their_sources),
        cmocka_unit_test(a_version_has_its_own_rules),
        cmocka_unit_test(defaults_are_the_stacks_own),
        cmocka_unit_test(switches_that_are_off_are_not_listed),
        cmocka_unit_test(every_alias_names_a_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
