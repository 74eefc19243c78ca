/* Runs a fuzz target on the files of a corpus, so that the targets are tested without
 * clang's libFuzzer. Prints `ok FILE` for each file that did not crash the target. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size_t size = 0, capacity = 1 << 20;
    uint8_t *data = malloc(capacity);
    if (data == NULL)
        abort();
    while ((size += fread(data + size, 1, capacity - size, file)) == capacity) {
        capacity *= 2;
        data = realloc(data, capacity);
        if (data == NULL)
            abort();
    }
    fclose(file);
    uint8_t *exact =
        /* exactly as large as the file, so that a sanitizer sees reads past its end */
        malloc(size == 0 ? 1 : size);
    if (exact == NULL)
        abort();
    for (size_t i = 0; i < size; i++)
        exact[i] = data[i];
    free(data);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    printf("ok %s\n", path);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0;
    for (int i = 1; i < argc; i++)
        status |= replay(argv[i]);
    return status;
}
