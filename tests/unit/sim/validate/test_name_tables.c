/* The files of names in configs/names/ by which words of publications are recognised:
 * what they refer to exists, an added row is an added name, and a malformed file is an
 * error at its line. */
#include "sim/validate/name_tables.h"

#include "base/paths.h"
#include "costmodel/profile/profile.h"
#include "costmodel/profile/stack.h"
#include "tests/unit/run_rows.h"

#include <sys/stat.h>
#include <unistd.h>

static char root[] = "/tmp/meshsim-test-XXXXXX";
static const char *const files[] = {"devices",  "frameworks", "models",
                                    "networks", "words",      "sources"};
enum {
    NUM_FILES = sizeof files / sizeof *files
};

/* Path of a shipped file of names, or (`copy`) of its copy below `root`. */
static const char *path_of(ms_ctx *cx, const char *name, bool copy)
{
    return ms_arena_printf(cx->arena, "%s/names/%s.json",
                           copy ? root : MS_SOURCE_DIR "/configs", name);
}

static const char *shipped_text(ms_ctx *cx, const char *name)
{
    FILE *file = fopen(path_of(cx, name, false), "r");
    assert_non_null(file);
    const size_t most = 1 << 20;
    char *text = ms_arena_alloc(cx->arena, most);
    size_t length = fread(text, 1, most - 1, file);
    fclose(file);
    text[length] = '\0';
    return text;
}

static void write_copy(ms_ctx *cx, const char *name, const char *text)
{
    FILE *file = fopen(path_of(cx, name, true), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Copies all shipped files of names to a folder of the test, from which they are read. */
static int copy_names(void **state)
{
    (void)state;
    if (mkdtemp(root) == NULL)
        return 1;
    ms_ctx *cx = test_cx();
    mkdir(ms_arena_printf(cx->arena, "%s/names", root), 0700);
    for (int i = 0; i < NUM_FILES; i++)
        write_copy(cx, files[i], shipped_text(cx, files[i]));
    return setenv("MESHSIM_CONFIGS", root, 1);
}

static int remove_names(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    for (int i = 0; i < NUM_FILES; i++)
        remove(path_of(cx, files[i], true));
    rmdir(ms_arena_printf(cx->arena, "%s/names", root));
    return rmdir(root);
}

static void is_file(ms_ctx *cx, const char *kind, const char *name)
{
    if (name != NULL && ms_config_file(cx, kind, name) == NULL)
        fail_msg("no configs/%s/%s.json", kind, name);
}

static void every_name_leads_to_a_file(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_name_tables *names;
    ASSERT_OK(ms_name_tables_load(cx, &names), cx);
    const ms_device_name *devices = names->devices.rows;
    for (int i = 0; i < names->devices.num_rows; i++)
        is_file(cx, "clusters", devices[i].cluster);
    const ms_list systems[] = {names->systems, names->drivers};
    for (int list = 0; list < 2; list++) {
        const ms_system_name *rows = systems[list].rows;
        for (int i = 0; i < systems[list].num_rows; i++)
            is_file(cx, "clusters", rows[i].cluster);
    }
    const ms_framework_name *frameworks = names->frameworks.rows;
    for (int i = 0; i < names->frameworks.num_rows; i++)
        is_file(cx, "stacks", frameworks[i].stack);
    const ms_known_model *models = names->models.rows;
    for (int i = 0; i < names->models.num_rows; i++) {
        is_file(cx, "models", models[i].model);
        is_file(cx, "models", models[i].like);
        assert_int_equal((models[i].model != NULL) + (models[i].like != NULL) +
                             (models[i].unsupported != MS_SUPPORTED),
                         1);
    }
    /* the last row matches any name */
    ASSERT_INT(models[names->models.num_rows - 1].name[0], '\0');
}

static bool has_conditions(const ms_framework_name *row)
{
    return row->word != NULL || row->work != NULL || row->before > 0;
}

/* No row comes after one that matches all names that it matches. */
static void no_row_hides_a_later_one(void **state)
{
    (void)state;
    const ms_name_tables *names;
    ms_ctx *cx = test_cx();
    ASSERT_OK(ms_name_tables_load(cx, &names), cx);
    const ms_known_model *models = names->models.rows;
    for (int i = 0; i < names->models.num_rows; i++)
        for (int j = 0; j < i && models[i].name[0] != '\0'; j++)
            if (strstr(models[i].name, models[j].name) != NULL)
                fail_msg("model %s hides %s", models[j].name, models[i].name);
    const ms_framework_name *frameworks = names->frameworks.rows;
    for (int i = 0; i < names->frameworks.num_rows; i++)
        for (int j = 0; j < i; j++)
            if (!has_conditions(&frameworks[j]) &&
                strncmp(frameworks[i].name, frameworks[j].name,
                        strlen(frameworks[j].name)) == 0)
                fail_msg("framework %s hides %s", frameworks[j].name, frameworks[i].name);
}

static void a_row_more_is_a_device_more(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    ASSERT_TEXT(device_row(cx, "ZZ900 SXM", "", "bf16").reason,
                "device: no configuration for \"ZZ900 SXM\"");
    write_copy(cx, "devices",
               "{\"before\": [], \"after\": [\"sxm\"], \"memories_gib\": [],\n"
               "\"devices\": [{\"name\": \"zz900\", \"cluster\": \"hgx-h200\"}],\n"
               "\"racks\": [], \"drivers\": [], \"systems\": []}");
    const ms_pubrun run = device_row(cx, "ZZ900 SXM", "", "bf16");
    write_copy(cx, "devices", shipped_text(cx, "devices"));
    ASSERT_TEXT(run.reason, NULL);
    ASSERT_TEXT(run.cluster->name, "hgx-h200");
}

static void a_malformed_file_is_an_error_at_its_place(void **state)
{
    (void)state;
    static const char *const bad[][3] = {
        {"networks", "{\"networks\": [],\n \"links\": [{\"name\": \"hdr\"}]}",
         "networks.json:2:12: error: field \"bandwidth\" is missing"},
        {"networks", "{\"networks\": [],\n \"links\": {}}",
         "networks.json:2:11: error: \"links\" must be an array"},
        {"networks", "{\"links\": []}",
         "networks.json:1:1: error: field \"networks\" is missing"},
        {"frameworks", "{\"frameworks\": [\n{\"name\": \"a\", \"stak\": \"b\"}]}",
         "frameworks.json:2:15: error: unknown key \"stak\""},
        {"frameworks", "{\"frameworks\": [\n{\"name\": \"a\", \"before\": 2024}]}",
         "frameworks.json:2:25: error: \"before\" is 2024, must be between 199001"},
        {"words",
         "{\"precision\": [],\n\"recompute\": [{\"name\": \"a\", \"mode\": \"b\"}]}",
         "words.json:2:37: error: \"mode\" is \"b\", must be one of none"},
        {"sources", "{\"kernels\": [], \"collectives\": [],\n\"runs\": [\"vtrain\"]}",
         "sources.json:2:10: error: an object must stand here"},
        {"sources",
         "{\"kernels\": [], \"collectives\": [],\n\"runs\": [{\"but_not\": [\"a\", 1]}]}",
         "sources.json:2:28: error: element 1 is a number, must be a string"},
        {"models", "{\"models\": [", "models.json:1:"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ms_ctx *cx = test_cx();
        ms_pubruns runs;
        write_copy(cx, bad[i][0], bad[i][1]);
        ASSERT_INT(ms_pubruns_read(cx, "runs.csv", columns, strlen(columns), &runs),
                   MS_EINPUT);
        if (strstr(test_messages(cx), bad[i][2]) == NULL)
            fail_msg("%s: no \"%s\"", test_messages(cx), bad[i][2]);
        write_copy(cx, bad[i][0], shipped_text(cx, bad[i][0]));
    }
}

static void a_missing_file_is_named(void **state)
{
    (void)state;
    ms_ctx *cx = test_cx();
    const ms_name_tables *names;
    remove(path_of(cx, "words", true));
    ASSERT_INT(ms_name_tables_load(cx, &names), MS_EIO);
    assert_non_null(strstr(test_messages(cx), "no file configs/names/words.json"));
    write_copy(cx, "words", shipped_text(cx, "words"));
}

/* Changing any one byte of a file gives an error or a usable file, and no crash. */
static void no_byte_of_a_file_ends_the_program(void **state)
{
    (void)state;
    static const char others[] = "\"{}[],:0x\n";
    unsigned long random = 1;
    for (int i = 0; i < 20 * NUM_FILES; i++) {
        ms_ctx *cx = test_cx();
        const char *name = files[i % NUM_FILES], *shipped = shipped_text(cx, name);
        char *text = ms_arena_strdup(cx->arena, shipped);
        random = random * 6364136223846793005UL + 1442695040888963407UL;
        text[(random >> 33) % strlen(text)] = others[(random >> 20) % 10];
        write_copy(cx, name, text);
        const char *rows = ms_arena_printf(
            cx->arena,
            "%sa,S,2024-01,Llama 3 8B,,,,,,,,,,,,,,2048,1,16,16,GB200 NVL36,HDR,2,,"
            "4,0,,2,1F1B,1,1,1,full,fp8,,Megatron-LM,,1.5,\n",
            columns);
        ms_pubruns runs;
        ms_status status = ms_pubruns_read(cx, "runs.csv", rows, strlen(rows), &runs);
        assert_true(status == MS_OK ? runs.num_runs == 1 : cx->first != NULL);
        write_copy(cx, name, shipped);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_name_leads_to_a_file),
        cmocka_unit_test(no_row_hides_a_later_one),
        cmocka_unit_test(a_row_more_is_a_device_more),
        cmocka_unit_test(a_malformed_file_is_an_error_at_its_place),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(no_byte_of_a_file_ends_the_program),
    };
    return cmocka_run_group_tests(tests, copy_names, remove_names);
}
