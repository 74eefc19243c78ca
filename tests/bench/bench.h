/* Shared by the benchmark programs: a clock, medians of times, and counts of executed
 * instructions by valgrind. */
#ifndef MS_TESTS_BENCH_BENCH_H
#define MS_TESTS_BENCH_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(double *values, int num)
{
    qsort(values, (size_t)num, sizeof *values, by_value);
    return values[num / 2];
}

/* Instructions that the program `self` executes with the arguments "WHAT COUNT",
 * counted by callgrind; negative where valgrind is not installed. */
static inline double instructions(const char *self, const char *what, long count)
{
    char *command = NULL;
    size_t length = 0;
    FILE *text = open_memstream(&command, &length);
    fprintf(text,
            "valgrind --tool=callgrind --callgrind-out-file=/dev/null %s %s %ld 2>&1 | "
            "grep 'Collected' | tr -d ,",
            self, what, count);
    fclose(text);
    FILE *pipe = popen(command, "r");
    char line[256];
    double value = -1.0;
    if (pipe != NULL && fgets(line, sizeof line, pipe) != NULL &&
        strchr(line, ':') != NULL)
        value = strtod(strrchr(line, ':') + 1, NULL);
    if (pipe != NULL)
        pclose(pipe);
    free(command);
    return value;
}

/* Prints the instructions per unit of work: `self` with the arguments "WHAT N" does a
 * job of `num` units N times. */
static inline void print_instructions(const char *self, const char *what, double num,
                                      const char *unit)
{
    double few = instructions(self, what, 2), many = instructions(self, what, 12);
    if (few > 0.0 && many > 0.0)
        printf("  %-28s %6.1f instructions %s\n", what, (many - few) / 10.0 / num, unit);
    else
        printf("  %-28s instructions: valgrind is not installed\n", what);
}

#endif
