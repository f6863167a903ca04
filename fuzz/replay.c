/* Runs a fuzz target over files and folders of files, where there is no libFuzzer: the seed corpus
 * stays a test with any compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 1 << 20 };

static int files;

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_MAX);
    int failed = !file || !data;
    if (!failed) {
        size_t size = fread(data, 1, INPUT_MAX, file);
        /* As large as the input, so that a read past its end is seen. */
        uint8_t *exact = realloc(data, size ? size : 1);
        data = exact ? exact : data;
        LLVMFuzzerTestOneInput(data, size);
        files++;
    } else {
        perror(path);
    }
    free(data);
    if (file)
        fclose(file);
    return failed;
}

static int replay(const char *path)
{
    struct stat facts;
    if (stat(path, &facts) || !S_ISDIR(facts.st_mode))
        return replay_file(path);
    struct dirent **names = NULL;
    int failed = 0, n = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char inner[4096];
        snprintf(inner, sizeof inner, "%s/%s", path, names[i]->d_name);
        if (names[i]->d_name[0] != '.')
            failed |= replay_file(inner);
        free(names[i]);
    }
    free(names);
    return failed || n < 0;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= replay(argv[i]);
    printf("%d inputs\n", files);
    return failed || !files;
}
