/* Searches the fastest plan of a model on each of two clusters and compares them.
 *
 * cc clusters.c $(pkg-config --cflags --libs meshsim) -o clusters && ./clusters */
#include <meshsim.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number behind the first "key": of a result; a program would use a JSON library. */
static double number_of(const char *json, const char *key)
{
    char text[64];
    snprintf(text, sizeof text, "\"%s\": ", key);
    const char *at = strstr(json, text);
    return at == NULL ? 0.0 : strtod(at + strlen(text), NULL);
}

static int show_progress(void *payload, double done_frac, double elapsed_s,
                         double best_step_s)
{
    (void)payload;
    fprintf(stderr, "%3.0f %% after %.0f s, fastest so far %.3g s\n", 100.0 * done_frac,
            elapsed_s, best_step_s);
    return 0; /* anything else would end the search */
}

int main(void)
{
    static const char *const clusters[] = {"hgx-h100", "hgx-h200"};
    meshsim_context *context;
    if (meshsim_open(&context) != MESHSIM_OK)
        return 1;
    for (int i = 0; i < 2; i++) {
        char options[256], *json;
        snprintf(options, sizeof options,
                 "{\"model\": \"8b\", \"gpus\": 32, \"cluster\": \"%s\", \"top\": 1}",
                 clusters[i]);
        meshsim_status status =
            meshsim_search(context, NULL, options, show_progress, NULL, &json);
        if (status != MESHSIM_OK) {
            fprintf(stderr, "%s", meshsim_error(context));
            meshsim_free(json);
            meshsim_close(context);
            return (int)status;
        }
        printf("%s: %.4f s a step, MFU %.1f %%\n", clusters[i], number_of(json, "step_s"),
               100.0 * number_of(json, "mfu_frac"));
        meshsim_free(json);
    }
    meshsim_close(context);
    return 0;
}
