/* Answers of a sweep in a file of lines, so that an interrupted one can go on. */
#include "base/hash.h"
#include "base/json.h"
#include "costmodel/plan/plan_field.h"
#include "sim/planning/plan_sweep.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ONE_LINE (-1)

struct ms_plan_sweep_state {
    ms_ctx *cx;
    FILE *file;
    const char *path;
    const ms_plan_sweep *sweep;
    const char **keys; /* (questions) */
};

/* ---- keys ---- */

/* Text that tells a question from others: the job, its limits and its memory rule, hashed. */
static const char *key_of(ms_arena *arena, const ms_best_question *question)
{
    const ms_plan *base = &question->base;
    const ms_memory_rule *memory = &question->limits->memory;
    const char *text = ms_arena_printf(
        arena, "%s|%s|%s|%s|%d|%ld|%ld|%ld|%.17g|%.17g|%.17g", base->model, base->cluster,
        base->stack, base->profile != NULL ? base->profile : "", (int)base->compute,
        base->gpus, base->sequence_length, base->global_batch, memory->min_probability,
        memory->headroom_frac, memory->headroom_bytes);
    for (ms_choice i = MS_CHOOSE_PARAM_DTYPE; i < MS_NUM_CHOICES; i++)
        if (i != MS_CHOOSE_STACK && !ms_plan_is_plain(base, i))
            text = ms_arena_printf(arena, "%s|%s=%s", text, ms_plan_fields[i].name,
                                   ms_plan_value_text(arena, base, i));
    for (int i = 0; i < question->limits->num; i++)
        text = ms_arena_printf(arena, "%s|%s", text, question->limits->texts[i]);
    return ms_arena_printf(arena, "%016llx",
                           (unsigned long long)ms_hash_bytes(text, strlen(text)));
}

static void make_keys(ms_plan_sweep_state *s)
{
    int num = ms_plan_sweep_num(s->sweep);
    s->keys = MS_NEW_ARRAY(s->cx->arena, num, const char *);
    for (int i = 0; i < num; i++)
        s->keys[i] = key_of(s->cx->arena, &s->sweep->questions[i]);
}

/* ---- reading ---- */

typedef struct state_line {
    const char *key, *reason;
    bool optimal;
} state_line;

#define AT(member) offsetof(state_line, member)
static const ms_field line_fields[] = {
    {MS_FIELD_TEXT, "question", AT(key), .required = true, .help = "what was asked"},
    {MS_FIELD_TEXT, "reason", AT(reason), .nullable = true, .required = true,
     .help = "why no plan was found; null if one was"},
    {MS_FIELD_BOOL, "optimal", AT(optimal), .required = true,
     .help = "the whole space was covered"},
    {MS_FIELD_ANY, "plan", 0, .required = true, .help = "the fastest plan, or null"},
    {0}};
#undef AT

static int find_question(const ms_plan_sweep_state *s, const char *key)
{
    for (int i = 0; i < ms_plan_sweep_num(s->sweep); i++)
        if (strcmp(s->keys[i], key) == 0)
            return i;
    return -1;
}

static ms_status take_line(ms_plan_sweep_state *s, ms_jval root, int *num_known)
{
    ms_ctx *cx = s->cx;
    const ms_plan_sweep *sweep = s->sweep;
    state_line line = {0};
    MS_TRY(ms_json_read(cx, root, line_fields, &line));
    int index = find_question(s, line.key);
    if (index < 0 || sweep->answered[index])
        return MS_OK;
    ms_best_plan *answer = &sweep->answers[index];
    ms_jval given;
    *answer = (ms_best_plan){.open_bound_s = NAN};
    if (ms_json_member(cx, root, "plan", &given) && !ms_json_is_null(given)) {
        ms_plan plan;
        MS_TRY(ms_plan_read(cx, given, &plan));
        MS_TRY(ms_best_plan_again(cx, &sweep->questions[index], &plan, answer));
    } else if (line.reason == NULL) {
        return ms_json_fail(cx, root, "neither a plan nor a reason why there is none");
    }
    answer->reason = line.reason;
    answer->optimal = line.optimal;
    sweep->answered[index] = true;
    (*num_known)++;
    return MS_OK;
}

static ms_status read_lines(ms_plan_sweep_state *s, const char *text, size_t length,
                            int *num_known)
{
    int number = 1;
    for (const char *end; length > 0 && (end = memchr(text, '\n', length)) != NULL;
         number++) {
        size_t bytes = (size_t)(end - text);
        const char *name = ms_arena_printf(s->cx->arena, "%s, line %d", s->path, number);
        ms_jdoc *doc;
        ms_jval root;
        MS_TRY(ms_json_parse(s->cx, name, text, bytes, &doc, &root));
        ms_status status = take_line(s, root, num_known);
        ms_json_close(doc);
        MS_TRY(status);
        text = end + 1;
        length -= bytes + 1;
    }
    return MS_OK;
}

static ms_status fail_io(const ms_plan_sweep_state *s, const char *what)
{
    return ms_fail(s->cx, MS_EIO, (ms_loc){.file = s->path}, "cannot be %s: %s", what,
                   strerror(errno));
}

/* Reads the file and places it behind its last complete line, where it then ends. */
static ms_status read_file(ms_plan_sweep_state *s, int *num_known)
{
    long length = fseek(s->file, 0, SEEK_END) == 0 ? ftell(s->file) : -1;
    if (length < 0)
        return fail_io(s, "read");
    rewind(s->file);
    char *text = ms_arena_take(s->cx->arena, (size_t)length + 1);
    if (fread(text, 1, (size_t)length, s->file) != (size_t)length)
        return fail_io(s, "read");
    while (length > 0 && text[length - 1] != '\n')
        length--;
    MS_TRY(read_lines(s, text, (size_t)length, num_known));
    if (fseek(s->file, length, SEEK_SET) != 0 || ftruncate(fileno(s->file), length) != 0)
        return fail_io(s, "written");
    return MS_OK;
}

ms_status ms_plan_sweep_state_open(ms_ctx *cx, const char *path, ms_plan_sweep *sweep,
                                   ms_plan_sweep_state **out, int *num_known)
{
    ms_plan_sweep_state *s = MS_NEW(cx->arena, ms_plan_sweep_state);
    *s = (ms_plan_sweep_state){.cx = cx, .path = path, .sweep = sweep};
    *num_known = 0;
    make_keys(s);
    s->file = fopen(path, "a+");
    if (s->file == NULL)
        return fail_io(s, "opened");
    ms_status status = read_file(s, num_known);
    if (status != MS_OK) {
        fclose(s->file);
        return status;
    }
    *out = s;
    return MS_OK;
}

ms_status ms_plan_sweep_state_add(ms_plan_sweep_state *state, int index,
                                  const ms_best_plan *answer)
{
    ms_jout out = ms_jout_open(state->file);
    out.line_depth = ONE_LINE;
    ms_jout_begin_object(&out);
    ms_jout_text_field(&out, "question", state->keys[index]);
    ms_jout_text_field(&out, "reason", answer->reason);
    ms_jout_bool_field(&out, "optimal", answer->optimal);
    ms_jout_key(&out, "plan");
    if (answer->found)
        ms_plan_write_json(&out, &answer->plan);
    else
        ms_jout_null(&out);
    ms_jout_end_object(&out);
    ms_jout_close(&out);
    return fflush(state->file) == 0 ? MS_OK : fail_io(state, "written");
}

void ms_plan_sweep_state_close(ms_plan_sweep_state *state)
{
    fclose(state->file);
}
