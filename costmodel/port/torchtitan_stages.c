/* torchtitan: schedules, virtual stages and the modules of stages. Source: pytorch/torchtitan
 * v0.2.2, torchtitan/distributed/pipeline_parallel.py. */
#include "costmodel/port/torchtitan_priv.h"

#include <string.h>

#define MAX_STAGES 32767

static bool has_pipeline(const ms_port *port)
{
    return port->plan->size[MS_PP] > 1;
}

#define SCHEDULE  "parallelism.pipeline_parallel_schedule"
#define OF_STAGE  "parallelism.pipeline_parallel_layers_per_stage"
#define PARTS     "parallelism.module_fqns_per_model_part"
#define LESS_HEAD "parallelism.pipeline_parallel_first_stage_less_layers"
#define LESS_TAIL "parallelism.pipeline_parallel_last_stage_less_layers"

static const ms_port_word schedules[] = {{"1F1B", MS_1F1B},
                                         {"GPipe", MS_GPIPE},
                                         {"Interleaved1F1B", MS_INTERLEAVED},
                                         {"LoopedBFS", MS_LOOPED_BFS},
                                         {"InterleavedZeroBubble", MS_INTERLEAVED_ZB},
                                         {"ZBVZeroBubble", MS_ZB_V},
                                         {"DualPipeV", MS_DUALPIPEV},
                                         {0}};

static long usual_chunks(ms_schedule_kind kind)
{
    return kind == MS_1F1B || kind == MS_GPIPE ? 1 : 2;
}

static long rounded_up(long a, long b)
{
    return (a + b - 1) / b;
}

static void put_parts(ms_port *port)
{
    const ms_plan *plan = port->plan;
    ms_arena *arena = port->cx->arena;
    const char *text = "[";
    long layer = 0;
    for (long i = 0; i < plan->num_stage_layers; i++) {
        const char *part = i == 0 ? "\"tok_embeddings\"" : "";
        for (long k = 0; k < plan->layers_per_stage[i]; k++, layer++)
            part = ms_arena_printf(arena, "%s%s\"layers.%ld\"", part,
                                   part[0] == '\0' ? "" : ", ", layer);
        if (i == plan->num_stage_layers - 1)
            part = ms_arena_printf(arena, "%s%s\"norm\", \"output\"", part,
                                   part[0] == '\0' ? "" : ", ");
        text = ms_arena_printf(arena, "%s%s[%s]", text, i == 0 ? "" : ", ", part);
    }
    ms_port_put(port, PARTS, ms_arena_printf(arena, "%s]", text));
}

/* Layers of a stage that make as many stages, where embedding and head count as a layer
 * each; 0: no number does. */
static long layers_of_stage(const ms_plan *plan, const ms_model *model)
{
    long stages = plan->size[MS_PP] * plan->virtual_stages,
         counted = model->num_layers + 2;
    long of_stage = rounded_up(counted, stages);
    return rounded_up(counted, of_stage) == stages ? of_stage : 0;
}

bool ms_torchtitan_needs_layers(const ms_plan *plan, const ms_model *model)
{
    return plan->virtual_stages != usual_chunks(plan->schedule) &&
           layers_of_stage(plan, model) == 0;
}

static void put_chunks(ms_port *port)
{
    const ms_plan *plan = port->plan;
    if (plan->num_stage_layers > 0)
        put_parts(port);
    else if (ms_torchtitan_needs_layers(plan, port->model))
        ms_port_leave_out(port, "%ld virtual stages without layers_per_stage",
                          plan->virtual_stages);
    else if (plan->virtual_stages != usual_chunks(plan->schedule))
        ms_port_put_whole(port, OF_STAGE, layers_of_stage(plan, port->model));
}

void ms_torchtitan_put_schedule(ms_port *port)
{
    const char *word = ms_port_word_of(schedules, port->plan->schedule);
    if (!has_pipeline(port))
        return;
    if (word == NULL) {
        ms_port_leave_choice(port, MS_CHOOSE_SCHEDULE);
        return;
    }
    ms_port_put_text(port, SCHEDULE, word);
    put_chunks(port);
}

/* Counts "layers.N" in each inner list. */
static ms_status take_parts(ms_port *port, const ms_port_setting *setting)
{
    ms_plan *plan = port->plan;
    long *layers = MS_NEW_ARRAY(port->cx->arena, MAX_STAGES, long);
    long num = 0, sum = 0;
    int depth = 0;
    for (const char *at = setting->value; *at != '\0'; at++) {
        depth += (*at == '[') - (*at == ']');
        if (*at == ']' && depth == 1 && ++num >= MAX_STAGES)
            return ms_port_fail(port, setting, "too many stages");
        if (depth == 2 && strncmp(at, "layers.", 7) == 0) {
            layers[num]++;
            sum++;
        }
    }
    if (num == 0 || num % plan->size[MS_PP] != 0 || sum != port->model->num_layers)
        return ms_port_fail(port, setting,
                            "%ld parts with %ld layers, for pp %ld and %ld layers", num,
                            sum, plan->size[MS_PP], port->model->num_layers);
    plan->virtual_stages = num / plan->size[MS_PP];
    plan->num_stage_layers = num;
    plan->layers_per_stage = layers;
    return MS_OK;
}

/* Stages share layers and ends, the first ones taking what is left over; the ends then
 * give up theirs (pipeline_parallel.py, generate_llm_fqn_per_model_part). */
static ms_status take_ends(ms_port *port, long head, long tail)
{
    ms_plan *plan = port->plan;
    long stages = plan->size[MS_PP] * plan->virtual_stages;
    long counted = port->model->num_layers + head + tail;
    long *layers = MS_NEW_ARRAY(port->cx->arena, stages, long);
    for (long i = 0; i < stages; i++) {
        layers[i] = counted / stages + (i < counted % stages) - (i == 0 ? head : 0) -
                    (i == stages - 1 ? tail : 0);
        if (layers[i] < 0)
            return ms_port_fail(port, ms_port_find(port, i == 0 ? LESS_HEAD : LESS_TAIL),
                                "a stage would have less than no layers");
    }
    plan->num_stage_layers = stages;
    plan->layers_per_stage = layers;
    return MS_OK;
}

static ms_status take_chunks(ms_port *port)
{
    ms_plan *plan = port->plan;
    long head = 1, tail = 1, of_stage = 0, pp = plan->size[MS_PP];
    const ms_port_setting *parts = ms_port_find(port, PARTS);
    if (parts != NULL && parts->value[0] == '[')
        return take_parts(port, parts);
    MS_TRY(ms_port_take_whole(port, LESS_HEAD, 0, 1048576, &head));
    MS_TRY(ms_port_take_whole(port, LESS_TAIL, 0, 1048576, &tail));
    MS_TRY(ms_port_take_whole(port, OF_STAGE, 1, 1048576, &of_stage));
    plan->virtual_stages = usual_chunks(plan->schedule);
    if (of_stage > 0) {
        long stages = rounded_up(port->model->num_layers + head + tail, of_stage);
        if (stages % pp != 0)
            return ms_port_fail(port, ms_port_find(port, OF_STAGE),
                                "%ld stages are no multiple of pp %ld", stages, pp);
        plan->virtual_stages = stages / pp;
    }
    bool own = ms_port_has(port, LESS_HEAD) || ms_port_has(port, LESS_TAIL);
    return own && port->model->num_layers > 0 ? take_ends(port, head, tail) : MS_OK;
}

ms_status ms_torchtitan_take_schedule(ms_port *port)
{
    long kind = MS_1F1B;
    ms_plan_set_schedule(port->plan, MS_1F1B);
    MS_TRY(ms_port_take_word(port, SCHEDULE, schedules, &kind));
    if (!has_pipeline(port))
        return MS_OK;
    if (!ms_port_has(port, SCHEDULE))
        ms_port_assume(port, SCHEDULE " 1F1B");
    ms_plan_set_schedule(port->plan, (ms_schedule_kind)kind);
    return take_chunks(port);
}

const char *const ms_torchtitan_schedule_keys[] = {SCHEDULE,  OF_STAGE,  PARTS,
                                                   LESS_HEAD, LESS_TAIL, NULL};
/* A group that a plan states is the schedule's own by the rules. */
const int ms_torchtitan_schedule_choices[] = {
    MS_CHOOSE_VIRTUAL_STAGES, MS_CHOOSE_STAGE_LAYERS, MS_CHOOSE_GROUP, -1};
