/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "bench.h"

#include <errno.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Read the processor's name: the first "model name" line of /proc/cpuinfo, which only x86
 * processors have. */
static void read_cpu(char *cpu, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    char line[512];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        const char *colon = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(cpu, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

void bench_read_machine(struct bench_machine *machine)
{
    struct utsname names;

    memset(machine, 0, sizeof(*machine));
    if (uname(&names) == 0) {
        snprintf(machine->cpu, sizeof(machine->cpu), "%s", names.machine);
        snprintf(machine->kernel, sizeof(machine->kernel), "%s", names.release);
    }
    read_cpu(machine->cpu, sizeof(machine->cpu));
#ifdef __clang__
    snprintf(machine->compiler, sizeof(machine->compiler), "%s", __VERSION__);
#else
    snprintf(machine->compiler, sizeof(machine->compiler), "GCC %s", __VERSION__);
#endif
    machine->cpu_count = sysconf(_SC_NPROCESSORS_ONLN);
}

void bench_format_number(char *text, size_t size, double value)
{
    int digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;

    snprintf(text, size, "%.*f", digits, value);
}

FILE *bench_open(const char *dir, const char *name, char path[BENCH_PATH_SIZE])
{
    FILE *file;

    if (snprintf(path, BENCH_PATH_SIZE, "%s/%s", dir, name) >= BENCH_PATH_SIZE) {
        bench_die("%s: the path is too long", dir);
    }
    file = fopen(path, "w");
    if (file == NULL) {
        bench_die("%s: %s", path, strerror(errno));
    }
    return file;
}

void bench_close(FILE *file, const char *path)
{
    int failed = ferror(file);

    if (fclose(file) != 0 || failed) {
        bench_die("%s: it could not be written", path);
    }
    printf("%s\n", path);
}

void bench_json_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fprintf(file, "\\%c", *text);
        } else if ((unsigned char)*text < 0x20) {
            fprintf(file, "\\u%04x", (unsigned)*text);
        } else {
            fputc(*text, file);
        }
    }
    fputc('"', file);
}

void bench_json_member(FILE *file, const char *key, const char *text)
{
    fprintf(file, ", \"%s\": ", key);
    bench_json_text(file, text);
}

void bench_svg_text(FILE *file, int x, int y, const char *style, const char *text)
{
    fprintf(file, "<text x=\"%d\" y=\"%d\"%s>", x, y, style);
    for (; *text != '\0'; text++) {
        if (*text == '&' || *text == '<' || *text == '>') {
            fputs(*text == '&' ? "&amp;" : *text == '<' ? "&lt;" : "&gt;", file);
        } else if ((unsigned char)*text >= 0x20) {
            fputc(*text, file);
        }
    }
    fputs("</text>\n", file);
}
