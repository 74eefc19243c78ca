#include "api/context.h"

#include "base/json.h"
#include "base/options_json.h"
#include "base/version.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MAX_THREADS 1024

const char *meshsim_version(void)
{
    return MS_VERSION;
}

const char *meshsim_status_text(meshsim_status status)
{
    switch (status) {
    case MESHSIM_OK:
        return "done";
    case MESHSIM_EIO:
        return "failure of a file or at run time";
    case MESHSIM_EINPUT:
        return "bad input";
    case MESHSIM_ENOFIT:
        return "nothing fits or keeps the limits";
    case MESHSIM_ECHECK:
        return "a check failed";
    case MESHSIM_ENOMEM:
        return "memory is exhausted";
    case MESHSIM_EINTERRUPTED:
        return "interrupted";
    }
    return "unknown status";
}

/* ---- contexts ---- */

meshsim_status meshsim_open(meshsim_context **context)
{
    meshsim_context *made = calloc(1, sizeof *made);
    *context = NULL;
    if (made == NULL)
        return MESHSIM_ENOMEM;
    made->num_threads = 1;
    made->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (made->locale == (locale_t)0) {
        free(made);
        return MESHSIM_ENOMEM;
    }
    made->configs = ms_api_data_folder();
    *context = made;
    return MESHSIM_OK;
}

static void forget(meshsim_context *context)
{
    free(context->error);
    free(context->notes);
    context->error = context->notes = NULL;
    context->no_memory = false;
}

void meshsim_close(meshsim_context *context)
{
    if (context == NULL)
        return;
    forget(context);
    free(context->configs);
    freelocale(context->locale);
    free(context);
}

void meshsim_cancel(meshsim_context *context)
{
    __atomic_store_n(&context->stop, 1, __ATOMIC_RELAXED);
}

const char *meshsim_error(const meshsim_context *context)
{
    if (context->no_memory)
        return "error: no memory is left\n";
    return context->error == NULL ? "" : context->error;
}

const char *meshsim_notes(const meshsim_context *context)
{
    return context->notes == NULL ? "[]\n" : context->notes;
}

void meshsim_free(char *text)
{
    free(text);
}

/* ---- calls ---- */

/* Writes the errors and notes of a call into texts of the context. */
static void keep_messages(ms_api_call *call)
{
    meshsim_context *context = call->context;
    size_t length;
    FILE *errors = open_memstream(&context->error, &length);
    if (errors != NULL) {
        ms_diag_print(&call->cx, errors);
        (void)fclose(errors);
    }
    FILE *notes = open_memstream(&context->notes, &length);
    if (notes == NULL)
        return;
    ms_jout out = ms_jout_open(notes);
    ms_jout_begin_array(&out);
    for (const ms_kept_note *n = call->cx.notes->first; n != NULL; n = n->next) {
        ms_jout_begin_object(&out);
        ms_jout_text_field(&out, "kind", n->kind);
        ms_jout_text_field(&out, "text", n->text);
        ms_jout_end_object(&out);
    }
    ms_jout_end_array(&out);
    ms_jout_close(&out);
    (void)fclose(notes);
}

/* The guarded part of a call; its arena lives on in a plan that is made. */
static void begin(void *payload)
{
    ms_api_call *call = payload;
    ms_kept_notes notes = {0};
    call->cx = (ms_ctx){.arena = ms_arena_open(),
                        .verbosity = -1,
                        .notes = &notes,
                        .configs = call->context->configs,
                        .num_threads = call->context->num_threads,
                        .interrupted = &call->context->stop};
    call->status = call->work(call);
    keep_messages(call);
    if (call->made == NULL)
        ms_arena_close(call->cx.arena);
}

meshsim_status ms_api_run(ms_api_call *call, char **json)
{
    meshsim_context *context = call->context;
    forget(context);
    locale_t before = uselocale(context->locale);
    bool had_memory = ms_memory_guard_run(begin, call, &context->stop);
    bool has_text = call->stream != NULL && fclose(call->stream) == 0;
    (void)uselocale(before);
    __atomic_store_n(&context->stop, 0, __ATOMIC_RELAXED);
    context->no_memory = !had_memory || (call->stream != NULL && !has_text);
    if (context->no_memory) {
        free(call->text);
        call->text = NULL;
    }
    if (json != NULL)
        *json = call->text;
    if (!context->no_memory)
        return (meshsim_status)call->status;
    meshsim_plan_close(call->made);
    return MESHSIM_ENOMEM;
}

ms_jout ms_api_result(ms_api_call *call)
{
    while ((call->stream = open_memstream(&call->text, &call->length)) == NULL)
        ms_memory_exhausted(BUFSIZ);
    return ms_jout_open(call->stream);
}

ms_status ms_api_options(ms_api_call *call, const ms_option_set *sets, int num_sets)
{
    const char *text = call->options;
    return text == NULL || text[0] == '\0'
               ? MS_OK
               : ms_options_read_json(&call->cx, sets, num_sets, "options", text);
}

/* ---- settings ---- */

static ms_status set_folder(ms_api_call *call)
{
    meshsim_context *context = call->context;
    struct stat info;
    char *folder = NULL;
    if (call->name == NULL)
        folder = ms_api_data_folder();
    else if (stat(call->name, &info) != 0 || !S_ISDIR(info.st_mode))
        return ms_fail(&call->cx, MS_EINPUT, MS_NOWHERE, "\"%s\" is no folder",
                       call->name);
    else
        while ((folder = strdup(call->name)) == NULL)
            ms_memory_exhausted(strlen(call->name));
    free(context->configs);
    context->configs = folder;
    return MS_OK;
}

meshsim_status meshsim_set_data_folder(meshsim_context *context, const char *folder)
{
    ms_api_call call = {.context = context, .work = set_folder, .name = folder};
    return ms_api_run(&call, NULL);
}

static ms_status refuse_threads(ms_api_call *call)
{
    return ms_fail(&call->cx, MS_EINPUT, MS_NOWHERE,
                   "the number of threads must be from 1 to %d", MAX_THREADS);
}

meshsim_status meshsim_set_threads(meshsim_context *context, int num_threads)
{
    if (num_threads < 1 || num_threads > MAX_THREADS) {
        ms_api_call call = {.context = context, .work = refuse_threads};
        return ms_api_run(&call, NULL);
    }
    forget(context);
    context->num_threads = num_threads;
    return MESHSIM_OK;
}
