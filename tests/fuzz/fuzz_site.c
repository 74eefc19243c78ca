/* Fuzzes the import of clusters from what tools say about a machine. A cluster that is
 * accepted must be one that reads back from its file. */
#include "topo/site.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void read_back(ms_ctx *cx, const ms_cluster *cluster)
{
    char *text;
    size_t length;
    ms_jdoc *doc;
    ms_jval root;
    ms_cluster again;
    FILE *file = open_memstream(&text, &length);
    require(file != NULL);
    ms_jout out = ms_jout_open(file);
    ms_cluster_write_file(&out, cluster);
    ms_jout_close(&out);
    fclose(file);
    require(ms_json_parse(cx, "written", text, length, &doc, &root) == MS_OK);
    require(ms_cluster_read(cx, root, &again) == MS_OK);
    require(again.gpus_per_node == cluster->gpus_per_node);
    ms_json_close(doc);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const bases[] = {"hgx-h100", "h100-nvl", "gb200-nvl72"};
    for (int i = 0; i < 9; i++) {
        int format = i % 3;
        ms_ctx cx = {.arena = ms_arena_open()};
        ms_site_options options = {.name = "fuzz",
                                   .nvlink_bytes_per_s =
                                       format != 1 && size % 2 == 1 ? 25e9 : 0.0};
        ms_site site;
        require(ms_cluster_load(&cx, bases[i / 3], &options.base) == MS_OK);
        ms_status status =
            ms_site_read(&cx, format, (const char *)data, size, &options, &site);
        require((status == MS_OK) == (cx.num_errors == 0));
        if (status == MS_OK)
            read_back(&cx, &site.cluster);
        ms_arena_close(cx.arena);
    }
    return 0;
}
