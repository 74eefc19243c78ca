/* Megatron-LM: schedules, virtual stages, layers of stages. Sources: arguments.py
 * (validate_args), core/transformer/pipeline_parallel_layer_layout.py, and for patterns of
 * layers arguments.py (moe_freq_type) and transformer_config.py (moe_layer_freq). */
#include "costmodel/port/megatron_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STAGES 32767

/* ---- export ---- */

static long stages_of(const ms_plan *plan)
{
    return plan->size[MS_PP] * plan->virtual_stages;
}

static void put_virtual_stages(ms_port *port)
{
    long v = port->plan->virtual_stages;
    if (v == 1)
        return;
    if (ms_port_since(port, 11))
        ms_port_put_whole(port, "--num-virtual-stages-per-pipeline-rank", v);
    else
        ms_port_put_whole(port, "--num-layers-per-virtual-pipeline-stage",
                          port->model->num_layers / stages_of(port->plan));
}

/* Embedding or loss counted as a layer: the first or last stage has one layer less. */
static bool put_short_ends(ms_port *port, const long *layers, long num)
{
    long full = layers[num / 2];
    bool first = layers[0] != full, last = layers[num - 1] != full;
    for (long i = 0; i < num; i++)
        if (layers[i] != full - ((i == 0 && first) || (i == num - 1 && last)))
            return false;
    if (num < 3)
        return false;
    if (first)
        ms_port_put(port, "--account-for-embedding-in-pipeline-split", NULL);
    if (last)
        ms_port_put(port, "--account-for-loss-in-pipeline-split", NULL);
    put_virtual_stages(port);
    return true;
}

/* Numbers of their own for the first and the last rank, over all their chunks. */
static bool put_own_ends(ms_port *port, const long *layers, long num)
{
    long pp = port->plan->size[MS_PP], v = port->plan->virtual_stages;
    for (long i = 0; i < num; i++) {
        long rank = i % pp, like = rank == 0 || rank == pp - 1 ? rank : 1;
        if (layers[i] != layers[like] || layers[i] == 0)
            return false;
    }
    if (v > 1 && !ms_port_since(port, 11))
        return false;
    ms_port_put_whole(port, "--decoder-first-pipeline-num-layers", layers[0] * v);
    ms_port_put_whole(port, "--decoder-last-pipeline-num-layers", layers[pp - 1] * v);
    put_virtual_stages(port);
    return true;
}

static void put_listed(ms_port *port)
{
    const ms_plan *plan = port->plan;
    const long *layers = plan->layers_per_stage;
    const char *layout =
        ms_plan_layout_text(port->cx->arena, plan, port->model, port->stack, port->rules);
    if (layout != NULL)
        ms_port_put_text(port, "--pipeline-model-parallel-layout", layout);
    else if (!put_short_ends(port, layers, plan->num_stage_layers) &&
             !put_own_ends(port, layers, plan->num_stage_layers))
        ms_port_leave_choice(port, MS_CHOOSE_STAGE_LAYERS);
}

static bool is_equal(const long *layers, long num)
{
    for (long i = 1; i < num; i++)
        if (layers[i] != layers[0])
            return false;
    return true;
}

/* The stack's own split is even, or counts embedding and loss as a layer each. */
static void put_split(ms_port *port)
{
    const ms_plan *plan = port->plan;
    long layers = port->model->num_layers, stages = stages_of(plan);
    bool listed = plan->num_stage_layers > 0;
    if (listed && !is_equal(plan->layers_per_stage, plan->num_stage_layers)) {
        put_listed(port);
        return;
    }
    if (!listed && layers % stages != 0 && (layers + 2) % stages == 0) {
        ms_port_put(port, "--account-for-embedding-in-pipeline-split", NULL);
        ms_port_put(port, "--account-for-loss-in-pipeline-split", NULL);
    } else if (layers % stages != 0) {
        ms_port_leave_out(port,
                          "the distribution of %ld layers over %ld stages "
                          "(layers_per_stage)",
                          layers, stages);
    }
    put_virtual_stages(port);
}

void ms_megatron_put_layers(ms_port *port)
{
    const ms_plan *plan = port->plan;
    if (plan->size[MS_PP] == 1)
        return;
    ms_schedule_kind kind = plan->schedule;
    if (kind != MS_1F1B && kind != MS_INTERLEAVED && kind != MS_COMBINED_1F1B)
        ms_port_leave_choice(port, MS_CHOOSE_SCHEDULE);
    if (kind == MS_COMBINED_1F1B)
        ms_port_put(port, "--overlap-moe-expert-parallel-comm", NULL);
    put_split(port);
    if (plan->microbatch_group > 0 && plan->virtual_stages > 1)
        ms_port_put_whole(port, "--microbatch-group-size-per-virtual-pipeline-stage",
                          plan->microbatch_group);
}

/* ---- layouts ---- */

/* Layers of stages that a layout has made so far. */
typedef struct layout {
    long layers[MAX_STAGES];
    long num;                      /* stages ended by "|" */
    long embeddings, losses, open; /* layers of the stage that is open */
    bool fits;
} layout;

static void add_letter(layout *to, char letter, long times)
{
    for (long i = 0; i < times && to->fits; i++) {
        if (letter == '|') {
            to->fits = to->num < MAX_STAGES - 1;
            if (to->fits)
                to->layers[to->num++] = to->open;
            to->open = 0;
        }
        to->open += letter == 't';
        to->embeddings += letter == 'E';
        to->losses += letter == 'L';
    }
    to->fits = to->fits && to->open <= 1048576 && to->embeddings <= 1 && to->losses <= 1;
}

/* "*n" behind a letter or group; 1 without. */
static long times_of(const char **text)
{
    if (**text != '*')
        return 1;
    char *end;
    long times = isdigit((unsigned char)(*text)[1]) ? strtol(*text + 1, &end, 10) : 0;
    if (times < 1 || times > 1048576)
        return 0;
    *text = end;
    return times;
}

static bool read_letters(const char **text, char end, layout *to);

/* A group in parentheses, behind its "(", as often as "*n" behind it says. */
static bool read_group(const char **text, layout *to)
{
    const char *group = *text;
    const char *behind = strchr(group, ')');
    if (behind == NULL)
        return false;
    behind++;
    long times = times_of(&behind);
    for (long i = 0; i < times && to->fits; i++) {
        *text = group;
        if (!read_letters(text, ')', to))
            return false;
    }
    *text = behind;
    return times > 0 && to->fits;
}

/* A letter with "*n" behind it, or a group, which groups do not contain. */
static bool read_letter(const char **text, bool in_group, layout *to)
{
    char c = *(*text)++;
    if (c == '(')
        return !in_group && read_group(text, to);
    long times = strchr("Etm|L", c) == NULL ? 0 : times_of(text);
    add_letter(to, c, times);
    return times > 0 && to->fits;
}

/* Reads letters up to `end`, or to the end of the text for '\0'; false: it is malformed. */
static bool read_letters(const char **text, char end, layout *to)
{
    while (**text != end) {
        if (**text == ',' || **text == ' ')
            (*text)++;
        else if (**text == '\0' || !read_letter(text, end == ')', to))
            return false;
    }
    return true;
}

static ms_status take_layout(ms_port *port, const ms_port_setting *setting)
{
    ms_plan *plan = port->plan;
    layout *read = MS_NEW(port->cx->arena, layout);
    read->fits = true;
    const char *at = setting->value == NULL ? "" : setting->value;
    if (!read_letters(&at, '\0', read) || read->embeddings != 1 || read->losses != 1)
        return ms_port_fail(port, setting,
                            "\"%s\" is no layout of E, t, m, L and |, with *n",
                            setting->value == NULL ? "" : setting->value);
    add_letter(read, '|', 1);
    long pp = plan->size[MS_PP], sum = 0;
    for (long i = 0; i < read->num; i++)
        sum += read->layers[i];
    if (read->num % pp != 0 || read->num / pp < 1)
        return ms_port_fail(port, setting, "%ld stages are no multiple of pp %ld",
                            read->num, pp);
    if (port->model->num_layers > 0 && sum != port->model->num_layers)
        return ms_port_fail(port, setting, "%ld layers, but the model has %ld", sum,
                            port->model->num_layers);
    plan->virtual_stages = read->num / pp;
    if (!is_equal(read->layers, read->num)) {
        plan->num_stage_layers = read->num;
        plan->layers_per_stage = read->layers;
    }
    return MS_OK;
}

/* ---- import ---- */

#define LAYOUT     "--pipeline-model-parallel-layout"
#define CHUNKS     "--num-virtual-stages-per-pipeline-rank"
#define CHUNK_SIZE "--num-layers-per-virtual-pipeline-stage"
#define FIRST      "--decoder-first-pipeline-num-layers"
#define LAST       "--decoder-last-pipeline-num-layers"
#define EMBEDDING  "--account-for-embedding-in-pipeline-split"
#define LOSS       "--account-for-loss-in-pipeline-split"

static ms_status take_virtual_stages(ms_port *port)
{
    ms_plan *plan = port->plan;
    long of_chunk = 0, counted = port->model->num_layers + ms_port_has(port, EMBEDDING) +
                                 ms_port_has(port, LOSS);
    if (ms_port_has(port, CHUNKS) && ms_port_has(port, CHUNK_SIZE))
        return ms_port_fail(port, ms_port_find(port, CHUNKS),
                            "not together with " CHUNK_SIZE);
    MS_TRY(ms_port_take_whole(port, CHUNKS, 1, MAX_STAGES, &plan->virtual_stages));
    MS_TRY(ms_port_take_whole(port, CHUNK_SIZE, 1, 1048576, &of_chunk));
    if (of_chunk == 0)
        return MS_OK;
    long stages = counted / of_chunk;
    if (counted == 0 || counted % of_chunk != 0 || stages % plan->size[MS_PP] != 0) {
        return ms_port_fail(
            port, ms_port_find(port, CHUNK_SIZE),
            "%ld layers are no whole number of chunks of %ld for each of pp "
            "%ld ranks",
            counted, of_chunk, plan->size[MS_PP]);
    }
    plan->virtual_stages = stages / plan->size[MS_PP];
    return MS_OK;
}

static long *new_layers(ms_port *port, long stages)
{
    port->plan->num_stage_layers = stages;
    long *layers = MS_NEW_ARRAY(port->cx->arena, stages, long);
    port->plan->layers_per_stage = layers;
    return layers;
}

/* Layers of the first and the last rank as given, the others' equal. */
static ms_status take_own_ends(ms_port *port)
{
    ms_plan *plan = port->plan;
    long pp = plan->size[MS_PP], v = plan->virtual_stages, all = port->model->num_layers;
    long first = 0, last = 0;
    MS_TRY(ms_port_take_whole(port, FIRST, 1, 1048576, &first));
    MS_TRY(ms_port_take_whole(port, LAST, 1, 1048576, &last));
    const ms_port_setting *setting = ms_port_find(port, first > 0 ? FIRST : LAST);
    long others = pp - (first > 0) - (last > 0), rest = all - first - last;
    if (others < 0 || rest < 0 || (others == 0) != (rest == 0) || first % v != 0 ||
        last % v != 0 || (others > 0 && rest % (others * v) != 0)) {
        return ms_port_fail(
            port, setting,
            "%ld layers do not divide: first rank %ld, last %ld, %ld others "
            "with %ld chunks",
            all, first, last, others, v);
    }
    long middle = others > 0 ? rest / others : 0;
    long *layers = new_layers(port, pp * v);
    for (long i = 0; i < pp * v; i++) {
        long rank = i % pp;
        layers[i] = (rank == 0 && first > 0       ? first
                     : rank == pp - 1 && last > 0 ? last
                                                  : middle) /
                    v;
    }
    return MS_OK;
}

/* The stack's own split is that with both ends counted, where layers alone do not
 * divide. */
static ms_status take_short_ends(ms_port *port)
{
    bool embedding = ms_port_has(port, EMBEDDING), loss = ms_port_has(port, LOSS);
    long stages = stages_of(port->plan), all = port->model->num_layers;
    long counted = all + embedding + loss;
    if (counted % stages != 0)
        return ms_port_fail(port, ms_port_find(port, embedding ? EMBEDDING : LOSS),
                            "%ld layers and ends do not divide over %ld stages", counted,
                            stages);
    if (embedding && loss && all % stages != 0)
        return MS_OK;
    long *layers = new_layers(port, stages);
    for (long i = 0; i < stages; i++)
        layers[i] = counted / stages - (i == 0 && embedding) - (i == stages - 1 && loss);
    return MS_OK;
}

static ms_status take_split(ms_port *port)
{
    const ms_port_setting *stated = ms_port_find(port, LAYOUT);
    if (stated != NULL)
        return take_layout(port, stated);
    MS_TRY(take_virtual_stages(port));
    if (port->model->num_layers == 0)
        return MS_OK;
    if (ms_port_has(port, FIRST) || ms_port_has(port, LAST))
        return take_own_ends(port);
    return ms_port_has(port, EMBEDDING) || ms_port_has(port, LOSS) ? take_short_ends(port)
                                                                   : MS_OK;
}

ms_status ms_megatron_take_layers(ms_port *port)
{
    ms_plan *plan = port->plan;
    bool combines = ms_port_has(port, "--overlap-moe-expert-parallel-comm");
    ms_plan_set_schedule(plan, MS_1F1B);
    if (plan->size[MS_PP] == 1)
        return MS_OK;
    MS_TRY(take_split(port));
    ms_plan_set_schedule(plan, combines                   ? MS_COMBINED_1F1B
                               : plan->virtual_stages > 1 ? MS_INTERLEAVED
                                                          : MS_1F1B);
    return ms_port_take_whole(port, "--microbatch-group-size-per-virtual-pipeline-stage",
                              0, 2147483647, &plan->microbatch_group);
}

/* ---- patterns ---- */

const char *ms_megatron_pattern_text(ms_arena *arena, const bool *on, long num)
{
    const char *text = "";
    for (long i = 0; i < num;) {
        long run = 1;
        while (i + run < num && on[i + run] == on[i])
            run++;
        text = ms_arena_printf(arena, "%s%s[%d]*%ld", text, text[0] == '\0' ? "" : "+",
                               on[i], run);
        i += run;
    }
    return ms_arena_printf(arena, "(%s)", text);
}

typedef struct pattern {
    const char *at;
    bool *on;
    long num, most;
    int depth;
    bool fits;
} pattern;

static void read_sum(pattern *p);

static void repeat(pattern *p, long start)
{
    while (p->fits && *p->at == '*') {
        p->at++;
        char *end;
        long times = isdigit((unsigned char)*p->at) ? strtol(p->at, &end, 10) : -1;
        long length = p->num - start;
        p->fits = times >= 0 && times <= p->most && length * times <= p->most - start;
        if (!p->fits)
            return;
        p->at = end;
        for (long i = length; i < length * times; i++)
            p->on[start + i] = p->on[start + i % length];
        p->num = start + length * times;
    }
}

static void read_term(pattern *p)
{
    long start = p->num;
    char open = *p->at++;
    p->fits = p->depth < 16 && (open == '(' || open == '[');
    if (!p->fits)
        return;
    if (open == '(') {
        p->depth++;
        read_sum(p);
        p->depth--;
    }
    while (open == '[' && *p->at != ']' && p->fits) {
        p->fits = p->num < p->most && (*p->at == '0' || *p->at == '1');
        if (p->fits)
            p->on[p->num++] = *p->at++ == '1';
        if (*p->at == ',')
            p->at++;
    }
    p->fits = p->fits && *p->at == (open == '(' ? ')' : ']');
    if (p->fits) {
        p->at++;
        repeat(p, start);
    }
}

static void read_sum(pattern *p)
{
    read_term(p);
    while (p->fits && *p->at == '+') {
        p->at++;
        read_term(p);
    }
}

bool ms_megatron_pattern_read(const char *text, long num, bool first, bool *on)
{
    char *end;
    long every = isdigit((unsigned char)text[0]) ? strtol(text, &end, 10) : 0;
    if (every > 0 && *end == '\0') {
        for (long i = 0; i < num; i++)
            on[i] = first ? i % every == 0 : (i + 1) % every != 0;
        return true;
    }
    char packed[512];
    size_t length = 0;
    for (; *text != '\0' && length + 1 < sizeof packed; text++)
        if (*text != ' ')
            packed[length++] = *text;
    packed[length] = '\0';
    pattern p = {.at = packed, .on = on, .most = num, .fits = true};
    read_sum(&p);
    return *text == '\0' && p.fits && *p.at == '\0' && p.num == num;
}
