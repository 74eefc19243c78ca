/* meshsim report: the plan that a page is about, and what its file states besides. */
#ifndef MS_CLI_CMD_REPORT_INPUT_H
#define MS_CLI_CMD_REPORT_INPUT_H

#include "cli/options/commands.h"
#include "cli/page/page.h"
#include "sim/request/campaign_options.h"
#include "sim/request/plan_options.h"

typedef struct ms_report_input {
    const char *path; /* NULL: the plan is of flags */
    const char *kind; /* "plan", "prediction", "search", "sweep" */
    ms_plan plan;
    double file_step_s;           /* NaN: the file states none */
    bool by_events;               /* the file's step time is the event engine's */
    ms_memory_rule memory;        /* rule by which the file's plans fit; all 0: none */
    double memory_limit_bytes;    /* NaN: not stated */
    ms_campaign_options campaign; /* terms of the file's campaign, if it has one */
    const ms_page_search *search; /* NULL: the file is no search */
    const ms_opt_integer *point;  /* --point, of a sweep */
    const ms_page_sweep *sweep;   /* NULL: the file is no sweep */
} ms_report_input;

/* Reads the plan of the command's file or flags. MS_EIO: the file cannot be read.
 * MS_EINPUT: its schema is none that holds a plan, a field is missing, the search found no
 * plan, or plan flags are given beside a file that states more than a plan, or `point` beside none that is a
 * sweep. */
ms_status ms_report_input_read(ms_ctx *cx, const ms_args *args,
                               const ms_plan_options *options,
                               const ms_opt_integer *point, ms_report_input *out);

#endif
