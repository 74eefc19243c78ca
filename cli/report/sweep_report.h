/* A sweep as text, JSON (meshsim.sweep/1) and CSV. */
#ifndef MS_CLI_REPORT_SWEEP_REPORT_H
#define MS_CLI_REPORT_SWEEP_REPORT_H

#include "base/json.h"
#include "sim/planning/plan_sweep.h"

/* Words for the choices that a point is: "fastest, cheapest"; "": none. */
const char *ms_sweep_mark_text(ms_arena *arena, const ms_plan_sweep_choice *choice,
                               int point);

void ms_sweep_report_print(FILE *out, ms_arena *arena, const ms_plan_sweep *sweep);
void ms_sweep_report_write_json(ms_jout *out, ms_arena *arena,
                                const ms_plan_sweep *sweep);
/* One row a point: the figures of the JSON, without the plan. */
void ms_sweep_report_write_csv(FILE *out, const ms_plan_sweep *sweep);

#endif
