/* libmeshsim: step time and memory of plans to train a language model on many GPUs, and the
 * search for the best of them.
 *
 * A call that computes returns a status, and its result as JSON: the document that the
 * program writes for the same question with --json, byte for byte (docs/json.md). Its
 * options are a JSON object whose keys are the options of the program's command without
 * their dashes, "-" or "_" between words: {"model": "70b", "gpus": 512, "zero": 1}. Values
 * are texts, numbers, true and false, and lists of texts where an option may be repeated;
 * null leaves an option out. NULL or "" stands for no options. Messages call an option by
 * the program's name ("--zero").
 *
 * A context holds the settings and the errors of one caller. Contexts share nothing:
 * threads that have one each may call at once. Only meshsim_cancel may be called on a
 * context in which another call is at work. Plans belong to no context, are not changed
 * after they are made, and may be used by several threads at once.
 *
 * The library does not end the process, prints nothing, reads standard input only where a
 * file is called "-", and changes no signal handler, locale or other state of the process;
 * it reads numbers as in the C locale. A broken invariant of its own code is an assert,
 * which aborts. Exhausted memory is a status, MESHSIM_ENOMEM: each call sets aside 32 MiB
 * that it spends on ending early. Where even that is not enough, a context with one thread,
 * the default, still returns, and documents and files that were open are lost; a search
 * with several threads then ends the process. */
#ifndef MESHSIM_H
#define MESHSIM_H

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

/* Statuses; the first ones are the exit codes of the program. */
typedef enum meshsim_status {
    MESHSIM_OK = 0,
    MESHSIM_EIO = 1,    /* a file cannot be read, or another failure at run time */
    MESHSIM_EINPUT = 2, /* bad input, see meshsim_error */
    MESHSIM_ENOFIT = 3, /* nothing fits into memory or keeps the limits; JSON says why */
    MESHSIM_ECHECK = 4, /* a check failed */
    MESHSIM_ENOMEM = 5, /* memory is exhausted */
    MESHSIM_EINTERRUPTED = 130 /* cancelled; a search still says what it has found */
} meshsim_status;

typedef struct meshsim_context meshsim_context;
typedef struct meshsim_plan meshsim_plan;

/* The version of the library, "0.1.0". The text is constant. */
const char *meshsim_version(void);

/* A few words for a status. The text is constant. */
const char *meshsim_status_text(meshsim_status status);

/* ---- contexts ---- */

/* Makes a context with one thread. Its data (models, clusters, profiles, stacks) is in
 * $MESHSIM_CONFIGS, or share/meshsim beside the folder of the library, or where the
 * program would find it. The caller closes it. MESHSIM_ENOMEM. */
meshsim_status meshsim_open(meshsim_context **context);

/* Frees a context; NULL is allowed. */
void meshsim_close(meshsim_context *context);

/* Sets the folder of the data, which holds models/, clusters/ and the like; NULL: the
 * default. MESHSIM_EINPUT if it is no folder. */
meshsim_status meshsim_set_data_folder(meshsim_context *context, const char *folder);

/* Sets the number of threads of searches, 1 to 1024. MESHSIM_EINPUT. */
meshsim_status meshsim_set_threads(meshsim_context *context, int num_threads);

/* Asks the call that is at work in the context, or the next one if none is, to end early:
 * a search with MESHSIM_EINTERRUPTED. May be called by any thread, and in a handler of a
 * signal. */
void meshsim_cancel(meshsim_context *context);

/* The errors of the last call, with hints, one a line: "error: ...". "" if it had none.
 * The text belongs to the context, and lives until its next call. */
const char *meshsim_error(const meshsim_context *context);

/* Notes of the last call and the defaults that it took, as a JSON array of
 * {"kind": "note" or "default", "text": ...}. The text lives until the next call. */
const char *meshsim_notes(const meshsim_context *context);

/* ---- models, clusters ---- */

/* The names that are known of a kind, "models", "clusters" or "stacks", as a JSON array;
 * the caller frees `json`. MESHSIM_EINPUT, MESHSIM_EIO. */
meshsim_status meshsim_names(meshsim_context *context, const char *kind, char **json);

/* Parameters, FLOP and shapes of a model, by its name or the path of a file, a Hugging Face
 * config included: `meshsim model NAME --json`; the caller frees `json`. */
meshsim_status meshsim_model(meshsim_context *context, const char *name,
                             const char *options, char **json);

/* Devices and network of a cluster, by its name or the path of a file: `meshsim cluster
 * NAME --json`; the caller frees `json`. */
meshsim_status meshsim_cluster(meshsim_context *context, const char *name, char **json);

/* ---- plans ---- */

/* Makes a plan of the document `plan` (meshsim.plan/1, as results hold it; NULL: none)
 * and of the options of a plan, which override it; what neither says takes the documented
 * default. The caller closes the plan. MESHSIM_EINPUT. */
meshsim_status meshsim_plan_open(meshsim_context *context, const char *plan,
                                 const char *options, meshsim_plan **out);

/* The plan as JSON (meshsim.plan/1), complete; the caller frees `json`. */
meshsim_status meshsim_plan_json(meshsim_context *context, const meshsim_plan *plan,
                                 char **json);

/* Frees a plan; NULL is allowed. */
void meshsim_plan_close(meshsim_plan *plan);

/* ---- answers; the caller frees `json`, which is NULL where there is no result ---- */

/* Step time, where it goes, and memory of a plan: `meshsim predict --json`. MESHSIM_ENOFIT,
 * with its JSON, if the plan does not fit. */
meshsim_status meshsim_predict(meshsim_context *context, const meshsim_plan *plan,
                               const char *options, char **json);

/* Why a plan costs what it does: `meshsim explain --json`, but for --types. */
meshsim_status meshsim_explain(meshsim_context *context, const meshsim_plan *plan,
                               const char *options, char **json);

/* A plan in the words of a framework, such as {"format": "megatron"}: `meshsim export --json`,
 * whose `text` is what the program prints without. */
meshsim_status meshsim_export(meshsim_context *context, const meshsim_plan *plan,
                              const char *options, char **json);

/* The step of a plan task by task: `meshsim simulate --json`, without its traces. */
meshsim_status meshsim_simulate(meshsim_context *context, const meshsim_plan *plan,
                                const char *options, char **json);

/* Progress of a search: about which share is done, the seconds so far, and the step time of
 * the fastest plan so far (NaN: none). Called up to four times a second by any of the
 * search's threads, one at a time, in a search of more than two seconds. Nonzero ends the
 * search as meshsim_cancel does. */
typedef int (*meshsim_progress)(void *payload, double done_frac, double elapsed_s,
                                double best_step_s);

/* The fastest plans of a space, with a certificate: `meshsim search --json`, without
 * --save-plan. `plan`, if not NULL, sets model, cluster, stack, GPUs and batch, as --plan
 * does; `progress` may be NULL. MESHSIM_ENOFIT and MESHSIM_EINTERRUPTED, with JSON of what
 * there is to say. */
meshsim_status meshsim_search(meshsim_context *context, const meshsim_plan *plan,
                              const char *options, meshsim_progress progress,
                              void *payload, char **json);

/* Frees a text that a call has returned; NULL is allowed. */
void meshsim_free(char *text);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
