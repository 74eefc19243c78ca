/* meshsim stack: rules, defaults and conventions of one stack, or a table of all. */
#include "base/paths.h"
#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "cli/report/stack_report.h"

static ms_status load_report(ms_ctx *cx, const char *name, ms_stack_report *out)
{
    *out = (ms_stack_report){0};
    MS_TRY(ms_stack_load(cx, name, &out->stack));
    MS_TRY(ms_rule_set_load(cx, out->stack, &out->rules));
    return ms_config_is_path(name) ? MS_OK
                                   : ms_config_aliases(cx, "stacks", out->stack->name,
                                                       &out->aliases, &out->num_aliases);
}

static ms_status write_stack(ms_ctx *cx, const ms_args *args, const char *name)
{
    ms_stack_report report;
    MS_TRY(load_report(cx, name, &report));
    if (ms_config_is_path(name))
        MS_TRY(ms_output_check_differ(cx, name, args->common.output));
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        ms_stack_report_write_json(&out.json, cx->arena, &report);
    else
        ms_stack_report_print(out.file, cx->arena, &report);
    return ms_output_close(cx, &out, MS_OK);
}

static ms_status write_stacks(ms_ctx *cx, const ms_args *args)
{
    const char *const *names;
    int num;
    MS_TRY(ms_config_names(cx, "stacks", &names, &num));
    ms_stack_report *reports = MS_NEW_ARRAY(cx->arena, num, ms_stack_report);
    for (int i = 0; i < num; i++)
        MS_TRY(load_report(cx, names[i], &reports[i]));
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        ms_stack_list_write_json(&out.json, cx->arena, reports, num);
    else
        ms_stack_list_print(out.file, cx->arena, reports, num);
    return ms_output_close(cx, &out, MS_OK);
}

ms_status ms_cmd_stack(ms_ctx *cx, ms_args *args)
{
    MS_TRY(ms_args_read(cx, args, NULL, 0));
    if (args->done)
        return MS_OK;
    return args->words.num_words > 0 ? write_stack(cx, args, args->words.words[0])
                                     : write_stacks(cx, args);
}
