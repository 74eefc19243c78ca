/* Contexts of the library: what a call of it runs in. */
#ifndef MS_API_CONTEXT_H
#define MS_API_CONTEXT_H

#include "api/meshsim.h"
#include "base/options.h"
#include "costmodel/plan/plan.h"

#include <locale.h>

struct meshsim_context {
    char *configs; /* folder of the data; NULL: where the program finds it */
    int num_threads;
    locale_t locale;     /* the C locale */
    volatile int stop;   /* nonzero: end early */
    char *error, *notes; /* texts of the last call; NULL: memory was exhausted */
    bool no_memory;      /* ... in the last call */
};

/* A plan lives in its own arena. */
struct meshsim_plan {
    ms_arena *arena;
    ms_plan plan;
};

/* One call: what the caller gave, and where its result goes. */
typedef struct ms_api_call ms_api_call;
struct ms_api_call {
    meshsim_context *context;
    ms_ctx cx;
    ms_status (*work)(ms_api_call *call);
    const char *name, *options; /* model, cluster or kind; options as JSON, or NULL */
    const char *plan_text;      /* meshsim.plan/1, or NULL */
    const meshsim_plan *plan;
    meshsim_plan *made; /* a new plan, which takes the call's arena; NULL: none */
    meshsim_progress progress;
    void *payload;
    FILE *stream; /* the result's text; NULL: there is no result */
    char *text;
    size_t length;
    ms_status status;
};

/* Runs call->work, with its status, errors and notes in the context; `json` (may be NULL)
 * receives the text of the result, or NULL. */
meshsim_status ms_api_run(ms_api_call *call, char **json);

/* The writer of the call's result, on its stream. */
ms_jout ms_api_result(ms_api_call *call);

/* Fills the tables from the options of the call. MS_EINPUT. */
ms_status ms_api_options(ms_api_call *call, const ms_option_set *sets, int num_sets);

/* The folder of data that belongs to the installed library, on the heap; NULL: there is
 * none, or $MESHSIM_CONFIGS is set. */
char *ms_api_data_folder(void);

#endif
