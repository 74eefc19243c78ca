/* A plan in the words of a framework, from its options to its answer, and the answer as JSON. */
#ifndef MS_SIM_REQUEST_EXPORT_ANSWER_H
#define MS_SIM_REQUEST_EXPORT_ANSWER_H

#include "costmodel/port/port.h"
#include "sim/request/opened_plan.h"

/* Options of an export besides those of its plan. */
typedef struct ms_export_inputs {
    const char *format;
    ms_opt_choice launcher;
    bool lossy;
    bool ignore_rules; /* an option of plans */
} ms_export_inputs;
extern const ms_option ms_export_option_table[];

typedef struct ms_export_answer {
    bool is_complete; /* the answer can be written */
    ms_workload *workload;
    ms_plan plan; /* under the format's stack, with the layers of stages that it needs */
    const ms_port_format *format;
    ms_port_exported exported;
    ms_port_export_options how;
} ms_export_answer;

/* Finds the format. MS_EINPUT: none is given, or there is none of that name. */
ms_status ms_export_check(ms_ctx *cx, const ms_export_inputs *inputs,
                          const ms_port_format **format);
/* Exports a plan. MS_EINPUT: also if the format cannot express it, without `lossy`.
 * Whatever the status, the caller closes the answer. */
ms_status ms_export_ask(ms_ctx *cx, const ms_export_inputs *inputs, const ms_plan *plan,
                        ms_export_answer *out);
void ms_export_answer_close(ms_export_answer *answer);

/* Writes the format's own text; or meshsim.export/1, which has that text, too. */
void ms_export_answer_write(FILE *out, ms_arena *arena, const ms_export_answer *answer);
void ms_export_answer_write_json(ms_jout *out, ms_arena *arena,
                                 const ms_export_answer *answer);

#endif
