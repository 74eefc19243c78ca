/* Program keys that tests of layer programs start from, and the count of failed cases. */
#include "tests/support/program_cases.h"

#include "costmodel/program/program_check.h"

#include <stdio.h>
#include <string.h>

static int num_wrong; /* failed (and printed) cases of the running test */

ms_model ms_case_model(int i)
{
    return i < MS_NUM_SMALL_DENSE ? ms_small_dense[i]()
                                  : ms_small_moe[i - MS_NUM_SMALL_DENSE]();
}

ms_program_key ms_case_whole_key(ms_block_kind part)
{
    return (ms_program_key){.block = (unsigned char)part,
                            .attention_fused = true,
                            .tp = 1,
                            .cp = 1,
                            .ep = 1,
                            .etp = 1,
                            .microbatch = MS_CASE_MICROBATCH};
}

ms_program_key ms_case_split_key(ms_block_kind part)
{
    ms_program_key key = ms_case_whole_key(part);
    key.tp = key.cp = 2;
    key.loss_parallel = true;
    return key;
}

const ms_program *ms_case_program(ms_arena *arena, const ms_model *model,
                                  const ms_program_key *key, long data_parallel)
{
    const ms_program *program =
        ms_program_make(arena, model, key, MS_SMALL_SEQUENCE, data_parallel, MS_BF16);
    ms_check_finding finding;
    if (!ms_program_check(program, &finding))
        ms_case_wrong(ms_case_describe(arena, model, key), finding.text);
    return program;
}

ms_program *ms_case_copy(ms_arena *arena, const ms_program *program)
{
    ms_program *copy = MS_NEW(arena, ms_program);
    *copy = *program;
    copy->tensors = MS_NEW_ARRAY(arena, program->num_tensors, ms_tensor);
    copy->nodes = MS_NEW_ARRAY(arena, program->num_nodes, ms_node);
    memcpy(copy->tensors, program->tensors,
           (size_t)program->num_tensors * sizeof *copy->tensors);
    memcpy(copy->nodes, program->nodes, (size_t)program->num_nodes * sizeof *copy->nodes);
    return copy;
}

const char *ms_case_describe(ms_arena *arena, const ms_model *model,
                             const ms_program_key *key)
{
    return ms_arena_printf(
        arena,
        "%s part %d tp %d cp %d ep %d etp %d sp %d recompute %d fused %d "
        "regather %d loss_parallel %d",
        model->name, key->block, key->tp, key->cp, key->ep, key->etp,
        key->sequence_parallel, key->recompute, key->attention_fused, key->regather,
        key->loss_parallel);
}

int ms_case_start(void **state)
{
    (void)state;
    num_wrong = 0;
    return 0;
}

int ms_case_num_wrong(void)
{
    return num_wrong;
}

void ms_case_wrong(const char *label, const char *what)
{
    num_wrong++;
    fprintf(stderr, "%s: %s\n", label, what);
}
