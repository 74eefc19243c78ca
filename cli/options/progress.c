#include "cli/options/progress.h"

#include "base/json.h"

#include <unistd.h>

bool ms_progress_is_shown(const ms_args *args)
{
    return args->common.json_lines || (!args->common.quiet && isatty(STDERR_FILENO));
}

bool ms_progress_write(const ms_args *args, const ms_progress *progress)
{
    if (!args->common.json_lines)
        return false;
    ms_jout out = ms_jout_open(stderr);
    out.line_depth = -1;
    ms_jout_begin_object(&out);
    ms_jout_text_field(&out, "schema", "meshsim.progress/1");
    ms_jout_text_field(&out, "command", args->command->name);
    ms_jout_text_field(&out, "unit", progress->unit);
    ms_jout_number_field(&out, "done", progress->done);
    ms_jout_number_field(&out, "total", progress->total);
    ms_jout_number_field(&out, "best_step_s", progress->best_step_s);
    ms_jout_number_field(&out, "loss", progress->loss);
    ms_jout_end_object(&out);
    ms_jout_close(&out);
    (void)fflush(stderr);
    return true;
}

void ms_progress_clear(const ms_args *args)
{
    if (!args->common.json_lines)
        fputs("\r\033[K", stderr);
}
