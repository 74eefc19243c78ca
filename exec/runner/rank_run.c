/* Opens a rank's run (stages, parameters, buffers) and runs its steps. */
#include "exec/runner/rank_run.h"

#include "base/number.h"
#include "base/rng.h"
#include "exec/core/plan_types.h"
#include "exec/params/documents.h"
#include "sim/simulate/move_names.h"

#include <math.h>

/* ---- micro-batches in progress ---- */

static ms_documents documents_of(const ms_rank_run *r)
{
    const ms_plan *plan = r->rank.planned->plan;
    return (ms_documents){.packing = plan->packing,
                          .lengths = &r->rank.planned->workload->lengths,
                          .seed = r->job->options->tokens.seed,
                          .sequence_length = plan->sequence_length,
                          .global_batch = plan->global_batch};
}

double ms_rank_run_step_tokens(const ms_rank_run *r)
{
    const ms_plan *plan = r->rank.planned->plan;
    if (plan->packing != MS_PADDED_TO_SEQUENCE)
        return (double)plan->global_batch * (double)plan->sequence_length;
    ms_documents documents = documents_of(r);
    return ms_documents_step_tokens(&documents, r->step);
}

/* Index of a micro-batch within the step. If each stage is placed twice (bidirectional
 * pipeline), the second copies process the second half of the micro-batches. */
static long microbatch_of(const ms_rank_run *r, const ms_flight *flight)
{
    const ms_schedule_shape *shape = &r->rank.planned->schedule->shape;
    bool second = flight->stage >= ms_schedule_model_stages(shape);
    return flight->microbatch + (second ? ms_schedule_stage_microbatches(shape) : 0);
}

/* Adds what the sequences' lengths change: where they start, or which tokens are padding. */
static void add_documents(const ms_rank_run *r, ms_flight *flight, long first,
                          int *targets)
{
    ms_documents documents = documents_of(r);
    ms_batch *batch = &flight->batch;
    long num = batch->num_sequences, length = batch->sequence_length;
    int *starts = documents.packing == MS_PACKED
                      ? MS_NEW_ARRAY(flight->arena, num * length, int)
                      : NULL;
    for (long i = 0; i < num; i++) {
        if (starts != NULL)
            ms_documents_starts(&documents, r->step, first + i, starts + i * length);
        long real = ms_documents_tokens(&documents, r->step, first + i);
        for (long j = real; j < length; j++)
            targets[i * length + j] = -1;
    }
    batch->starts = starts;
}

#define DROPOUT_STREAM 0xD809u /* key of dropout's random numbers; tokens have others */

static void make_batch(ms_rank_run *r, ms_flight *flight)
{
    const ms_plan *plan = r->rank.planned->plan;
    const ms_tokens *tokens = &r->job->options->tokens;
    long num = plan->microbatch, length = plan->sequence_length;
    flight->batch = (ms_batch){.first_sequence = r->rank.place->dp * num,
                               .num_sequences = num,
                               .sequence_length = length,
                               .positions = r->job->positions,
                               .num_tokens = ms_rank_run_step_tokens(r),
                               .number = ++r->num_batches};
    if (!r->rank.backend->has_values)
        return;
    const ms_rng dropout = ms_rng_split(ms_rng_seed(tokens->seed), DROPOUT_STREAM);
    int *inputs = MS_NEW_ARRAY(flight->arena, num * length, int);
    int *targets = MS_NEW_ARRAY(flight->arena, num * length, int);
    long first = (microbatch_of(r, flight) * r->rank.world->dp + r->rank.place->dp) * num;
    for (long i = 0; i < num; i++)
        ms_tokens_sequence(tokens, r->step, first + i, inputs + i * length,
                           targets + i * length);
    flight->batch.tokens = inputs;
    flight->batch.targets = targets;
    flight->batch.first_in_step = first;
    flight->batch.dropout_key = ms_rng_split(dropout, (uint64_t)r->step).seed;
    if (plan->packing != MS_NOT_PACKED)
        add_documents(r, flight, first, targets);
}

static ms_flight *idle_flight(ms_rank_run *r)
{
    ms_flight *flight = r->idle_flights;
    if (flight != NULL) {
        r->idle_flights = flight->next;
        return flight;
    }
    flight = MS_NEW(r->rank.cx->arena, ms_flight);
    flight->arena = ms_arena_open();
    return flight;
}

ms_flight *ms_flight_begin(ms_rank_run *r, const ms_rank_stage *stage, int microbatch)
{
    ms_flight *flight = idle_flight(r);
    flight->stage = stage->stage;
    flight->microbatch = microbatch;
    flight->blocks = MS_NEW_ARRAY(flight->arena, stage->num_blocks, ms_block_cells);
    for (int i = 0; i < stage->num_blocks; i++)
        flight->blocks[i] = ms_block_cells_make(flight->arena, &stage->blocks[i]);
    make_batch(r, flight);
    flight->next = r->flights;
    r->flights = flight;
    return flight;
}

ms_flight *ms_flight_of(ms_rank_run *r, int stage, int microbatch)
{
    ms_flight *flight = r->flights;
    while (flight != NULL && (flight->stage != stage || flight->microbatch != microbatch))
        flight = flight->next;
    return flight;
}

void ms_flight_end(ms_rank_run *r, ms_flight *flight)
{
    ms_flight **link = &r->flights;
    while (*link != flight)
        link = &(*link)->next;
    *link = flight->next;
    ms_arena_close(flight->arena);
    flight->arena = ms_arena_open();
    flight->next = r->idle_flights;
    r->idle_flights = flight;
}

static void close_flights(ms_flight *flight)
{
    for (; flight != NULL; flight = flight->next)
        ms_arena_close(flight->arena);
}

/* ---- opening ---- */

/* Shapes of a block's tensors on the rank; equal blocks share them. */
static const ms_local *shapes_of(ms_rank_run *r, const ms_block_plan *plan)
{
    for (int i = 0; i < r->num_blocks; i++)
        if (r->blocks[i]->plan == plan && r->blocks[i]->shapes != NULL)
            return r->blocks[i]->shapes;
    return ms_block_shapes(&r->rank, plan->program);
}

static ms_param_unit *embedding_unit(const ms_rank_run *r)
{
    for (int i = 0; i < r->num_blocks; i++)
        if (r->blocks[i]->plan->program->key.block == MS_BLOCK_EMBED)
            return r->blocks[i]->unit;
    return NULL;
}

static ms_status make_unit(ms_rank_run *r, const ms_rank_stage *stage, int block)
{
    const ms_block_plan *plan = stage->blocks[block].plan;
    bool tied = ms_head_shares_weights(r->rank.planned->workload) &&
                plan->program->key.block == MS_BLOCK_HEAD;
    ms_unit_options options = {
        .program = plan->program,
        .ops = plan->ops,
        .layer = ms_job_layer(&r->job->stages[stage->model_stage], block),
        .tied = tied ? embedding_unit(r) : NULL,
        .is_copy = stage->stage != stage->model_stage};
    return ms_unit_make(&r->rank, &options, &stage->blocks[block].unit);
}

/* Bytes of the tensor that a stage without blocks passes on: the input of the first later
 * stage with blocks. There always is one: the last stage has the head. */
static double passed_bytes(const ms_rank_run *r, int model_stage)
{
    const ms_job_stage *reader = &r->job->stages[model_stage];
    while (reader->num_blocks == 0)
        reader++;
    const ms_program *program = reader->blocks[0]->program;
    return ms_block_shapes(&r->rank, program)[program->input].bytes;
}

static void open_stage(ms_rank_run *r, int chunk)
{
    const ms_schedule_shape *shape = &r->rank.planned->schedule->shape;
    int stage = ms_schedule_stage(shape, r->pipeline_rank, chunk);
    int model_stage = ms_schedule_model_stage(shape, stage);
    const ms_job_stage *from = &r->job->stages[model_stage];
    ms_rank_stage *to = &r->stages[chunk];
    ms_arena *arena = r->rank.cx->arena;
    *to = (ms_rank_stage){.stage = stage,
                          .model_stage = model_stage,
                          .num_blocks = from->num_blocks,
                          .blocks = MS_NEW_ARRAY(arena, from->num_blocks, ms_rank_block),
                          .sums = ms_planned_stage(r->rank.planned, model_stage),
                          .gathered = MS_NEW_ARRAY(arena, from->num_blocks, ms_event)};
    if (from->num_blocks == 0)
        to->passed_bytes = passed_bytes(r, model_stage);
    for (int i = 0; i < from->num_blocks; i++) {
        to->blocks[i].plan = from->blocks[i];
        to->blocks[i].shapes = shapes_of(r, from->blocks[i]);
        ms_block_make_history(&r->rank, &to->blocks[i], r->job->options->num_steps);
        r->blocks[r->num_blocks++] = &to->blocks[i];
    }
}

static ms_status make_units_of(ms_rank_run *r, ms_rank_stage *stage, bool heads)
{
    for (int i = 0; i < stage->num_blocks; i++) {
        bool is_head = stage->blocks[i].plan->program->key.block == MS_BLOCK_HEAD;
        if (is_head == heads)
            MS_TRY(make_unit(r, stage, i));
    }
    return MS_OK;
}

/* Makes the parameters of all blocks: embeddings first, because a tied head uses the
 * embedding's matrix. */
static ms_status make_units(ms_rank_run *r)
{
    for (int s = 0; s < r->num_stages; s++)
        MS_TRY(make_units_of(r, &r->stages[s], false));
    for (int s = 0; s < r->num_stages; s++)
        MS_TRY(make_units_of(r, &r->stages[s], true));
    ms_param_unit **units =
        MS_NEW_ARRAY(r->rank.cx->arena, r->num_blocks, ms_param_unit *);
    for (int i = 0; i < r->num_blocks; i++)
        units[i] = r->blocks[i]->unit;
    return ms_unit_buffers_make(&r->rank, units, r->num_blocks, &r->buffers);
}

static ms_status make_early_gradients(ms_rank_run *r)
{
    const ms_planned *planned = r->rank.planned;
    if (!ms_shards_grads(planned->sharding) ||
        !ms_schedule_traits_of(planned->schedule->shape.kind).splits_backward)
        return MS_OK;
    for (int i = 0; i < r->num_blocks; i++)
        MS_TRY(ms_block_make_early(&r->rank, r->blocks[i]));
    return MS_OK;
}

static ms_status make_buffers(ms_rank_run *r)
{
    ms_rank *rank = &r->rank;
    const ms_planned *planned = rank->planned;
    long slots = planned->schedule->num_stages * ms_plan_microbatches(planned->plan);
    r->activations = MS_NEW_ARRAY(rank->cx->arena, slots, ms_handed);
    r->gradients = MS_NEW_ARRAY(rank->cx->arena, slots, ms_handed);
    ms_rank_sides sides = ms_split_sides(planned->pipeline.split, r->pipeline_rank);
    r->receive_bytes = 2.0 * planned->blocks.send_bytes * sides.neighbours;
    MS_TRY(ms_rank_allocate(rank, MS_MEMORY_COMM_BUFFERS, r->receive_bytes,
                            &r->receive_buffer));
    MS_TRY(ms_rank_allocate(rank, MS_MEMORY_COMM_BUFFERS,
                            ms_gathered_tokens_bytes(planned->workload, planned->plan),
                            &rank->tokens_buffer));
    for (int i = 0; i < r->num_blocks; i++)
        r->workspace_bytes =
            ms_max(r->workspace_bytes, (double)r->blocks[i]->plan->workspace_bytes);
    return ms_rank_workspace(rank, r->workspace_bytes, &r->workspace);
}

int ms_samples_of_rank(const ms_schedule *schedule, int pipeline_rank)
{
    return 2 * (schedule->first_action[pipeline_rank + 1] -
                schedule->first_action[pipeline_rank]);
}

ms_status ms_rank_run_open(ms_rank_run *r, ms_ctx *cx, const ms_job *job,
                           ms_device_rank *device, long rank)
{
    const ms_world *world = job->backend->world;
    const ms_schedule *schedule = job->planned->schedule;
    *r = (ms_rank_run){.job = job,
                       .asked_at_s = NAN,
                       .pipeline_rank = (int)world->places[rank].pp,
                       .num_stages = schedule->num_chunks,
                       .stages =
                           MS_NEW_ARRAY(cx->arena, schedule->num_chunks, ms_rank_stage)};
    r->rank = (ms_rank){.cx = cx,
                        .world = world,
                        .place = &world->places[rank],
                        .planned = job->planned,
                        .backend = job->backend->backend,
                        .device = device,
                        .precision =
                            ms_precision_of_plan(job->options->type, job->planned->plan),
                        .scratch = ms_arena_open(),
                        .balanced_routing = job->options->balanced_routing,
                        .capacity = job->capacity,
                        .orthogonal_shares = {job->options->orthogonal_shares[0],
                                              job->options->orthogonal_shares[1]},
                        .weights_in_bf16 = job->options->weights_in_bf16};
    r->rank.recipe = ms_run_recipe(job->options->type, job->planned->plan->recipe);
    int max_blocks = 0;
    for (int s = 0; s < job->planned->pipeline.split->num_stages; s++)
        max_blocks += job->stages[s].num_blocks;
    r->blocks = MS_NEW_ARRAY(cx->arena, max_blocks, ms_rank_block *);
    r->last_moves = MS_NEW_ARRAY(cx->arena, 3L * max_blocks, ms_last_move);
    for (int chunk = 0; chunk < r->num_stages; chunk++)
        open_stage(r, chunk);
    r->max_samples = ms_samples_of_rank(schedule, r->pipeline_rank);
    r->samples = MS_NEW_ARRAY(cx->arena, r->max_samples, ms_ledger_sample);
    MS_TRY(make_units(r));
    MS_TRY(make_early_gradients(r));
    return make_buffers(r);
}

void ms_rank_run_close(ms_rank_run *r)
{
    close_flights(r->flights);
    close_flights(r->idle_flights);
    ms_rank_release_all(&r->rank);
    ms_arena_close(r->rank.scratch);
}

/* ---- steps ---- */

double ms_rank_run_clock(const ms_rank_run *r)
{
    return r->recorder.on ? r->rank.backend->now_s(r->rank.device) : 0.0;
}

void ms_rank_run_record(ms_rank_run *r, ms_recorded slice, double start_s)
{
    if (!r->recorder.on)
        return;
    slice.start_s = start_s;
    slice.end_s = ms_rank_run_clock(r);
    ms_recorder_add(&r->recorder, slice);
}

void ms_rank_run_record_wait(ms_rank_run *r, ms_stream stream, const char *name,
                             bool goes_on, double start_s)
{
    ms_rank_run_record(r,
                       (ms_recorded){.stream = (unsigned char)stream,
                                     .kind = MS_TASK_COLLECTIVE,
                                     .name = name,
                                     .predicted_s = NAN,
                                     .waits = true,
                                     .goes_on = goes_on},
                       start_s);
}

ms_status ms_rank_run_step(ms_rank_run *r, long step, ms_step_outcome *out)
{
    const ms_schedule *schedule = r->rank.planned->schedule;
    r->step = step;
    r->ready = r->block_start = r->rank.backend->mark(r->rank.device);
    r->reduced = 0;
    r->num_samples = 0;
    r->num_last_moves = 0;
    r->recorder.on = step >= r->job->options->first_recorded_step;
    *out = (ms_step_outcome){0};
    r->first_slice = r->recorder.num;
    double start_s = ms_rank_run_clock(r);
    for (int i = 0; i < r->num_blocks; i++) {
        ms_unit_clear_gradients(&r->rank, r->blocks[i]->unit);
        if (r->blocks[i]->history != NULL)
            ms_scale_history_begin_step(r->blocks[i]->history);
    }
    ms_rank_run_record(r,
                       (ms_recorded){.stream = MS_STREAM_COMPUTE,
                                     .kind = MS_TASK_OPTIMIZER,
                                     .name = MS_MOVE_OPTIMIZER,
                                     .predicted_s = NAN,
                                     .goes_on = true},
                       start_s);
    MS_TRY(ms_state_gather_all(r));
    for (int a = schedule->first_action[r->pipeline_rank];
         a < schedule->first_action[r->pipeline_rank + 1]; a++)
        MS_TRY(ms_rank_run_action(r, a));
    return ms_rank_run_complete_gradients(r);
}

static ms_status read_stamps(ms_rank_run *r, double *stamps, long num)
{
    const ms_rank *rank = &r->rank;
    const ms_backend *backend = rank->backend;
    MS_TRY(backend->read_clock(rank->cx, rank->device, stamps, num));
    for (long i = r->first_slice; i < r->recorder.num; i++) {
        ms_recorded *slice = &r->recorder.slices[i];
        MS_TRY(backend->read_clock(rank->cx, rank->device, &slice->start_s, 1));
        MS_TRY(backend->read_clock(rank->cx, rank->device, &slice->end_s, 1));
    }
    for (int i = 0; i < r->num_samples; i++)
        MS_TRY(backend->read_clock(rank->cx, rank->device, &r->samples[i].time_s, 1));
    backend->forget_stamps(rank->device);
    return MS_OK;
}

ms_status ms_rank_run_read_clock(ms_rank_run *r, double *stamps, long num)
{
    const ms_rank *rank = &r->rank;
    const ms_backend *backend = rank->backend;
    if (backend->read_clock != NULL)
        MS_TRY(read_stamps(r, stamps, num));
    return backend->take_moves != NULL
               ? backend->take_moves(rank->cx, rank->device, &r->recorder)
               : MS_OK;
}
