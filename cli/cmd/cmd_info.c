/* meshsim info: optional parts of the build, usable GPUs, and folders of data. The
 * Makefile defines MS_HAVE_X as 0 or 1 for each optional part. */
#include "base/paths.h"
#include "base/print.h"
#include "cli/options/commands.h"
#include "cli/options/output.h"
#include "exec/measure/measure.h"

#ifndef MS_HAVE_CUDA /* for checkers that run without the Makefile */
#define MS_HAVE_CUDA    0
#define MS_HAVE_NCCL    0
#define MS_HAVE_CUDNN   0
#define MS_HAVE_MPI     0
#define MS_HAVE_BLAS    0
#define MS_HAVE_EXPAT   0
#define MS_HAVE_GNUPLOT 0
#endif

typedef struct feature {
    const char *name;
    bool found;
} feature;

static const feature features[] = {
    {"cuda", MS_HAVE_CUDA},       {"nccl", MS_HAVE_NCCL}, {"cudnn", MS_HAVE_CUDNN},
    {"mpi", MS_HAVE_MPI},         {"blas", MS_HAVE_BLAS}, {"expat", MS_HAVE_EXPAT},
    {"gnuplot", MS_HAVE_GNUPLOT}, {NULL, false},
};

#define NUM_KINDS 4
static const char *const kinds[NUM_KINDS] = {"models", "clusters", "profiles", "stacks"};

typedef struct data_folder {
    const char *path; /* path of a folder of data; NULL: not found */
    int num_files;
} data_folder;

static ms_status find_folders(ms_ctx *cx, data_folder folders[NUM_KINDS])
{
    for (int i = 0; i < NUM_KINDS; i++) {
        folders[i].path = ms_config_folder(cx, kinds[i]);
        const char *const *names;
        if (folders[i].path != NULL)
            MS_TRY(ms_config_names(cx, kinds[i], &names, &folders[i].num_files));
    }
    return MS_OK;
}

/* ---- GPUs ---- */

typedef struct gpus {
    int num;
    const ms_cuda_facts *facts;
    const char *const *clusters; /* per GPU: a cluster that has such GPUs; NULL: none */
    const char *reason;          /* why no GPU is usable; NULL: some GPUs are usable */
} gpus;

static gpus find_gpus(ms_arena *arena)
{
    const ms_cuda_driver *driver = ms_cuda_driver_of_libraries();
    ms_ctx cx = {.arena = arena}; /* own context: a missing GPU is no error of `info` */
    gpus found = {0};
    if (driver == NULL)
        return (gpus){.reason = "built without CUDA"};
    if (driver->find(&cx, &found.num) != MS_OK)
        return (gpus){.reason = cx.first->message};
    ms_cuda_facts *facts = MS_NEW_ARRAY(arena, found.num, ms_cuda_facts);
    const char **clusters = MS_NEW_ARRAY(arena, found.num, const char *);
    for (int i = 0; i < found.num; i++) {
        if (driver->describe(&cx, i, &facts[i]) != MS_OK)
            return (gpus){.reason = cx.first->message};
        clusters[i] = ms_machine_cluster_of_gpu(&cx, facts[i].name);
    }
    found.facts = facts;
    found.clusters = clusters;
    return found;
}

static void print_gpus(FILE *out, const gpus *found)
{
    fputs("\nGPUs on this machine\n", out);
    if (found->reason != NULL)
        ms_print(out, "  none: %s\n", found->reason);
    for (int i = 0; i < found->num; i++) {
        const char *cluster = found->clusters[i];
        ms_print(out, "  %d  %s, compute capability %d.%d, %.1f GiB, %s%s\n", i,
                 found->facts[i].name, found->facts[i].major, found->facts[i].minor,
                 found->facts[i].memory_bytes / (double)(1 << 30),
                 cluster == NULL ? "of no cluster that is known" : "as in cluster ",
                 cluster == NULL ? "" : cluster);
    }
}

static void write_gpus(ms_jout *json, const gpus *found)
{
    ms_jout_begin_object_field(json, "gpus");
    ms_jout_number_field(json, "count", found->num);
    ms_jout_text_field(json, "unavailable_because", found->reason);
    ms_jout_begin_array_field(json, "devices");
    for (int i = 0; i < found->num; i++) {
        const ms_cuda_facts *is = &found->facts[i];
        ms_jout_begin_object(json);
        ms_jout_text_field(json, "name", is->name);
        ms_jout_number_field(json, "compute_capability_major", is->major);
        ms_jout_number_field(json, "compute_capability_minor", is->minor);
        ms_jout_number_field(json, "num_sms", is->num_sms);
        ms_jout_number_field(json, "memory_bytes", is->memory_bytes);
        ms_jout_number_field(json, "driver_version", is->driver_version);
        ms_jout_number_field(json, "cublaslt_version", is->blas_version);
        ms_jout_number_field(json, "nccl_version", is->nccl_version);
        ms_jout_number_field(json, "cudnn_version", is->cudnn_version);
        ms_jout_text_field(json, "cluster", found->clusters[i]);
        ms_jout_end_object(json);
    }
    ms_jout_end_array(json);
    ms_jout_end_object(json);
}

/* ---- all ---- */

static void print_info(FILE *out, const data_folder folders[NUM_KINDS], const gpus *found)
{
    fputs("meshsim " MS_VERSION "\n\nfound on the machine that built it\n", out);
    for (const feature *f = features; f->name != NULL; f++)
        ms_print(out, "  %-9s %s\n", f->name, f->found ? "yes" : "no");
    print_gpus(out, found);
    fputs("\ndata\n", out);
    for (int i = 0; i < NUM_KINDS; i++)
        ms_print(out, "  %-9s %3d  %s\n", kinds[i], folders[i].num_files,
                 folders[i].path != NULL ? folders[i].path : "not found");
}

static void write_info(ms_jout *json, const data_folder folders[NUM_KINDS],
                       const gpus *found)
{
    ms_jout_begin_object(json);
    ms_jout_text_field(json, "schema", "meshsim.info/1");
    ms_jout_text_field(json, "version", MS_VERSION);
    ms_jout_begin_object_field(json, "features");
    for (const feature *f = features; f->name != NULL; f++)
        ms_jout_bool_field(json, f->name, f->found);
    ms_jout_end_object(json);
    write_gpus(json, found);
    ms_jout_begin_object_field(json, "configs");
    for (int i = 0; i < NUM_KINDS; i++) {
        ms_jout_begin_object_field(json, kinds[i]);
        ms_jout_text_field(json, "folder", folders[i].path);
        ms_jout_number_field(json, "count", folders[i].num_files);
        ms_jout_end_object(json);
    }
    ms_jout_end_object(json);
    ms_jout_end_object(json);
}

ms_status ms_cmd_info(ms_ctx *cx, ms_args *args)
{
    MS_TRY(ms_args_read(cx, args, NULL, 0));
    if (args->done)
        return MS_OK;
    data_folder folders[NUM_KINDS] = {0};
    MS_TRY(find_folders(cx, folders));
    gpus found = find_gpus(cx->arena);
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        write_info(&out.json, folders, &found);
    else
        print_info(out.file, folders, &found);
    return ms_output_close(cx, &out, MS_OK);
}
