/* meshsim info: what was built in, and where the data files are. The Makefile says
 * which optional parts it found with -DMS_HAVE_X=0 or 1. */
#include "base/json.h"
#include "base/paths.h"
#include "cli/commands.h"
#include "cli/output.h"

#ifndef MS_HAVE_CUDA
#define MS_HAVE_CUDA 0
#endif
#ifndef MS_HAVE_NCCL
#define MS_HAVE_NCCL 0
#endif
#ifndef MS_HAVE_MPI
#define MS_HAVE_MPI 0
#endif
#ifndef MS_HAVE_BLAS
#define MS_HAVE_BLAS 0
#endif
#ifndef MS_HAVE_GNUPLOT
#define MS_HAVE_GNUPLOT 0
#endif

typedef struct feature {
    const char *name;
    bool found;
} feature;

static const feature features[] = {
    {"cuda", MS_HAVE_CUDA}, {"nccl", MS_HAVE_NCCL},       {"mpi", MS_HAVE_MPI},
    {"blas", MS_HAVE_BLAS}, {"gnuplot", MS_HAVE_GNUPLOT}, {NULL, false},
};

#define NUM_KINDS 4
static const char *const kinds[NUM_KINDS] = {"models", "clusters", "profiles", "stacks"};

typedef struct data_folder {
    const char *path; /* NULL: not found */
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

static void print_info(FILE *out, const data_folder folders[NUM_KINDS])
{
    fputs("meshsim " MS_VERSION "\n\nfound on the machine that built it\n", out);
    for (const feature *f = features; f->name != NULL; f++)
        fprintf(out, "  %-9s %s\n", f->name, f->found ? "yes" : "no");
    fputs("\ndata\n", out);
    for (int i = 0; i < NUM_KINDS; i++)
        fprintf(out, "  %-9s %3d  %s\n", kinds[i], folders[i].num_files,
                folders[i].path != NULL ? folders[i].path : "not found");
}

static void write_info(FILE *out, const data_folder folders[NUM_KINDS])
{
    ms_jout json = ms_jout_open(out);
    ms_jout_begin_object(&json);
    ms_jout_text_field(&json, "schema", "meshsim.info/1");
    ms_jout_text_field(&json, "version", MS_VERSION);
    ms_jout_key(&json, "features");
    ms_jout_begin_object(&json);
    for (const feature *f = features; f->name != NULL; f++)
        ms_jout_bool_field(&json, f->name, f->found);
    ms_jout_end_object(&json);
    ms_jout_key(&json, "configs");
    ms_jout_begin_object(&json);
    for (int i = 0; i < NUM_KINDS; i++) {
        ms_jout_key(&json, kinds[i]);
        ms_jout_begin_object(&json);
        ms_jout_text_field(&json, "folder", folders[i].path);
        ms_jout_number_field(&json, "count", folders[i].num_files);
        ms_jout_end_object(&json);
    }
    ms_jout_end_object(&json);
    ms_jout_end_object(&json);
    ms_jout_close(&json);
}

ms_status ms_cmd_info(ms_ctx *cx, ms_args *args)
{
    MS_TRY(ms_args_read(cx, args, NULL, 0));
    if (args->done)
        return MS_OK;
    data_folder folders[NUM_KINDS] = {0};
    MS_TRY(find_folders(cx, folders));
    ms_output out;
    MS_TRY(ms_output_open(cx, args->common.output, &out));
    if (args->common.json)
        write_info(out.file, folders);
    else
        print_info(out.file, folders);
    return ms_output_close(cx, &out, MS_OK);
}
