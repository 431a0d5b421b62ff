/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The key of an op covers its sources, every file that -MD, the assembler and the linker list,
 * every file that a flag names by its path (flag_files.c), the compilers and the flags. One key has
 * one file, so a flag is refused if it
 *
 *   - makes the file depend on where and when it is compiled: on the CPU, on the path of the
 *     directory of the build, on chance;
 *   - reads files that nothing lists: profiles, files that are searched by name, other programs;
 *   - writes files that belong to the op into the directory of the build, which is removed;
 *   - changes what the builder itself asks for: the output, its kind, the lists.
 *
 * These need no refusal: -include, -imacros, -isystem, -iquote, -idirafter, -isysroot, --sysroot,
 * because -MD lists what is read; -T, --version-script and @FILE, because the linker lists them or
 * flag_files.c finds them; -fuse-ld and -B for the link, because the linker that they choose is
 * identified; -frandom-seed, because the builder's own comes last.
 */
#include "ops/refused_flags.h"
#include "base/text.h"

#include <string.h>
#include <strings.h>

#define RECIPE (DS_ACCEL__FLAG_OF_COMPILER | DS_ACCEL__FLAG_OF_LINK)
#define ALL (RECIPE | DS_ACCEL__FLAG_OF_VARIABLE)

static const char native[] =
    "is the CPU that compiles, and others share the result: name the instruction sets, here and in "
    "\"requires\": {\"cpu\": [...]}";
static const char native_variable[] = "is the CPU that compiles, and others share the result";
static const char split[] =
    "puts the debug information into files of the directory of the build, which is removed: use -g "
    "alone";
static const char counts[] =
    "lets the op count into files of the directory of the build, which is removed, and puts its "
    "path into the op";
static const char profile[] = "reads profiles, which are not part of the op's key";
static const char aside[] =
    "writes files beside the objects, into the directory of the build, which is removed";
static const char modules[] = "reads compiled modules, which are not part of the op's key";
static const char recorded[] =
    "puts the command into the op, with the directory of the build, which differs each time";
static const char chosen[] = "changes the output or the list of headers, which the builder chooses";
static const char searched[] =
    "names a file that the compiler searches, so that its contents are not part of the op's key: "
    "use the path, with a slash";
static const char programs[] =
    "chooses programs whose contents are not part of the op's key: use a variable such as CC or "
    "NVCC_CCBIN";
static const char device[] =
    "chooses libraries of devices whose contents are not part of the op's key: use a variable such "
    "as HIPCC";
static const char uuid[] = "makes another file each time: use --build-id=sha1";

/* Which flags are meant. The first row that matches decides. */
static const struct rule {
    const char *flag;   /* a '*' at its end stands for anything, '!' for a name without a slash */
    const char *reason; /* NULL: the flag is not refused */
    unsigned places;
} rules[] = {
    {"-gsplit-dwarf*", split, ALL},
    {"--coverage", counts, ALL},
    {"-coverage", counts, ALL},
    {"-fprofile-arcs", counts, ALL},
    {"-ftest-coverage", counts, ALL},
    {"-fcondition-coverage", counts, ALL},
    {"-fpath-coverage", counts, ALL},
    {"-fprofile-generate*", counts, ALL},
    {"-fcs-profile-generate*", counts, ALL},
    {"-fprofile-instr-generate*", counts, ALL},
    {"-fcoverage-mapping", counts, ALL},
    {"-fprofile-dir*", counts, ALL},
    {"-fprofile-note*", counts, ALL},
    {"-fprofile-use*", profile, ALL},
    {"-fprofile-instr-use*", profile, ALL},
    {"-fprofile-sample-use*", profile, ALL},
    {"-fauto-profile*", profile, ALL},
    {"-fbranch-probabilities", profile, ALL},
    {"-save-temps*", aside, ALL},
    {"--save-temps*", aside, ALL},
    {"-fstack-usage", aside, ALL},
    {"-fcallgraph-info*", aside, ALL},
    {"-fdump-*", aside, ALL},
    {"-da", aside, ALL},
    {"-dumpbase*", aside, ALL},
    {"-dumpdir*", aside, ALL},
    {"-aux-info*", aside, ALL},
    {"-fsave-optimization-record*", aside, ALL},
    {"-foptimization-record-file*", aside, ALL},
    {"-ftime-trace*", aside, ALL},
    {"-fproc-stat-report*", aside, ALL},
    {"--keep", aside, ALL}, /* of nvcc */
    {"-keep", aside, ALL},
    {"--keep-dir*", aside, ALL},
    {"-keep-dir*", aside, ALL},
    {"-fmodules*", modules, ALL},
    {"-fprebuilt-module-path*", modules, ALL},
    {"-frecord-gcc-switches", recorded, ALL}, /* Clang: the whole command */
    {"-frecord-command-line", recorded, ALL},
    {"-grecord-command-line", recorded, ALL},
    {"-optf*", NULL, ALL},   /* nvcc's response file */
    {"-openmp*", NULL, ALL}, /* of icpx */
    {"-o*", chosen, ALL},
    {"--output*", chosen, ALL},
    {"-c", chosen, ALL},
    {"--compile", chosen, ALL},
    {"-S", chosen, ALL},
    {"--assemble", chosen, ALL},
    {"-E", chosen, ALL},
    {"--preprocess", chosen, ALL},
    {"-M*", chosen, ALL},
    {"--dependencies", chosen, ALL},
    {"--write-dependencies", chosen, ALL},
    {"--user-dependencies", chosen, ALL},
    {"--write-user-dependencies", chosen, ALL},
    {"--generate-dependencies*", chosen, ALL}, /* of nvcc */
    {"--generate-nonsystem-dependencies*", chosen, ALL},
    {"--dependency-output*", chosen, ALL},
    {"--dependency-target-name*", chosen, ALL},
    {"-specs=!", searched, ALL},
    {"--specs=!", searched, ALL},
    {"-specs", searched, ALL},
    {"--specs", searched, ALL},
    {"-fplugin=!", searched, ALL},
    {"-wrapper", programs, RECIPE},
    {"-B*", programs, DS_ACCEL__FLAG_OF_COMPILER},
    {"--prefix*", programs, DS_ACCEL__FLAG_OF_COMPILER},
    {"-ccbin*", programs, RECIPE},
    {"--compiler-bindir*", programs, RECIPE},
    {"--gcc-toolchain*", programs, RECIPE},
    {"--gcc-install-dir*", programs, RECIPE},
    {"--rocm-path*", device, RECIPE},
    {"--hip-path*", device, RECIPE},
    {"--hip-device-lib*", device, RECIPE},
    {"--rocm-device-lib*", device, RECIPE},
    {"--cuda-path*", device, RECIPE},
    {"-ldir*", device, DS_ACCEL__FLAG_OF_COMPILER}, /* of nvcc */
    {"--libdevice-directory*", device, RECIPE},
};

/* ---- matching -------------------------------------------------------------------------------- */

static bool matches(const char *flag, size_t length, const char *pattern)
{
    size_t kept = strcspn(pattern, "*!");

    if (length < kept || strncmp(flag, pattern, kept) != 0) {
        return false;
    }
    return pattern[kept] == '*' ||
           (pattern[kept] == '!' ? memchr(flag + kept, '/', length - kept) == NULL
                                 : length == kept);
}

/* -march=native, "-arch native", which is two arguments of nvcc, and icpx's -xHost */
static bool is_native(const char *flag, size_t length)
{
    static const char value[] = "=native";
    size_t size = sizeof(value) - 1;

    return (length == 6 && strncasecmp(flag, "-xHost", 6) == 0) ||
           (length == 6 && strncmp(flag, "native", 6) == 0) ||
           (length >= size && strncmp(flag + length - size, value, size) == 0);
}

static const char *refuse(const char *flag, size_t length, enum ds_accel__flag_place place)
{
    if (is_native(flag, length)) {
        return place == DS_ACCEL__FLAG_OF_VARIABLE ? native_variable : native;
    }
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
        if ((rules[i].places & place) != 0 && matches(flag, length, rules[i].flag)) {
            return rules[i].reason;
        }
    }
    return NULL;
}

static bool is_one_of(const char *flag, const char *const *flags, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(flag, flags[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Whether a flag is for an assembler or linker, whose letters mean other things, or is a macro. */
static bool is_of_others(const char *flag, const char *before)
{
    static const char *const prefixes[] = {"-Wl,", "-Wa,", "-D", "-Xptxas=", "-Xlinker="};
    static const char *const options[] = {"-Xlinker", "-Xassembler", "-Xptxas", "-D"};

    for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
        if (strncmp(flag, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return before != NULL && is_one_of(before, options, ARRAY_SIZE(options));
}

const char *ds_accel__flag_refuse(const char *flag, const char *before,
                                  enum ds_accel__flag_place place)
{
    const char *reason = NULL;
    const char *part = flag;

    if (is_native(flag, strlen(flag))) {
        return place == DS_ACCEL__FLAG_OF_VARIABLE ? native_variable : native;
    }
    if (is_of_others(flag, before)) {
        return strstr(flag, "--build-id=uuid") != NULL ? uuid : NULL;
    }
    reason = refuse(flag, strlen(flag), place);
    if (strncmp(flag, "-Xcompiler=", 11) == 0 || strncmp(flag, "--compiler-options=", 19) == 0) {
        part = strchr(flag, '=') + 1;
    }
    while (reason == NULL) {
        size_t length = strcspn(part, ",");

        reason = refuse(part, length, place);
        if (part[length] == '\0') {
            break;
        }
        part += length + 1;
    }
    return reason;
}
