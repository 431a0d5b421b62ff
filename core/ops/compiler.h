/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Compilers of ops: compiler.c finds them, identity.c identifies them, nvcc.c asks nvcc. */
#ifndef DS_ACCEL_OPS_COMPILER_H
#define DS_ACCEL_OPS_COMPILER_H

#include "ds_accel.h"
#include "ops/arguments.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__text;

enum ds_accel__language {
    DS_ACCEL__LANGUAGE_C,
    DS_ACCEL__LANGUAGE_CXX,
    DS_ACCEL__LANGUAGE_CUDA,
    DS_ACCEL__LANGUAGE_HIP,
    DS_ACCEL__LANGUAGE_SYCL,
    DS_ACCEL__LANGUAGE_COUNT
};

struct ds_accel__compiler {
    enum ds_accel__language language;
    char **arguments;  /* the begin of each command line, ends with NULL; [0] is an absolute path */
    size_t options_at; /* the first argument behind the compiler's name: "ccache gcc" has 2 */
    char *path;        /* the compiler's file: absolute, links resolved; not a wrapper's (ccache) */
    char *version;     /* first line of --version that has a version */
    bool is_wrapped;   /* a wrapper such as ccache runs the compiler */
    bool is_gcc;       /* of the Free Software Foundation, with the assembler of binutils */
    /*
     * SHA-256 over the contents of all programs that compile, and over the arguments that follow
     * the compiler's name, with the files and programs that they name. Equal for equal compilers at
     * different places.
     */
    char digest[65];
    /* What answers.c remembers the identity by, and that of nvcc's host compiler; NULL: none. */
    char *question;
    char *host_question;
};

/*
 * Find the compiler of a language, run it to learn its version, and read its programs. The first
 * that exists is used: the variable's (CC, CXX, NVCC, HIPCC, ICPX), else the names of the table in
 * compiler.c in PATH, else those in the standard places of the vendor. The value of a variable is
 * a program and its arguments, separated by blanks; nothing is expanded. A value that cannot be
 * run is an error and not skipped.
 *
 * ERR_NOT_FOUND, with a sentence in why: what was looked for and where, and which package to
 * install. ERR_IO, with the reason in why: the compiler is there, but does not run.
 * ERR_PERMISSION: the process has raised rights. ERR_NO_MEMORY. After an error the compiler is
 * empty, else it is for ds_accel__compiler_clear(). why is also the error message.
 */
int32_t ds_accel__compiler_find(enum ds_accel__language language,
                                struct ds_accel__compiler *compiler, char *why, size_t why_size);
void ds_accel__compiler_clear(struct ds_accel__compiler *compiler);
/* Whether a variable names the compiler of a language, or nvcc's host compiler. */
bool ds_accel__compiler_is_named(enum ds_accel__language language);
/*
 * Find a command as ds_accel__compiler_find() finds a compiler, if it is the name of one ("nvcc"),
 * else in PATH, without running it. *path_out is a new string, NULL: there is none.
 * ERR_NO_MEMORY.
 */
int32_t ds_accel__compiler_locate(const char *name, char **path_out);
/* Add the variables that decide which compilers are found and what they are, with their values. */
void ds_accel__compiler_add_variables(struct ds_accel__text *text);
/* The name of a language's compiler: "cc", "c++", "nvcc", "hipcc", "icpx". Static storage. */
const char *ds_accel__language_compiler(enum ds_accel__language language);

/* An architecture of NVIDIA's devices, such as 9.0 or 12.0f. */
struct ds_accel__cuda_arch {
    uint32_t number; /* 90 for 9.0, 120 for 12.0 */
    char suffix;     /* 'a': this one only; 'f': its family; 0: none */
    bool has_ptx;    /* PTX is embedded, too, for later devices */
};

/* {0} is empty. Sorted by number, then suffix, without repetition. */
struct ds_accel__cuda_archs {
    struct ds_accel__cuda_arch *items; /* for free() */
    size_t count;
};

/*
 * Ask nvcc for the architectures that it generates code for: --help, because --list-gpu-code omits
 * those with suffixes. ERR_IO, ERR_NO_MEMORY.
 */
int32_t ds_accel__nvcc_archs(const struct ds_accel__compiler *nvcc,
                             struct ds_accel__cuda_archs *archs);
/*
 * Choose from accepted ones by a list such as "9.0;9.0a;12.0f+PTX", as in TORCH_CUDA_ARCH_LIST:
 * separated by semicolons, commas or blanks. list NULL or "": see nvcc.c. An entry that is
 * malformed or not accepted is ERR_INVALID, and the message names it and lists the accepted ones.
 * ERR_NO_MEMORY.
 */
int32_t ds_accel__nvcc_choose(const struct ds_accel__cuda_archs *accepted, const char *list,
                              struct ds_accel__cuda_archs *chosen);
/*
 * nvcc's arguments for these architectures: one -gencode=arch=compute_90,code=sm_90 each. A new
 * array that ends with NULL, for ds_accel__arguments_free(). NULL if memory is exhausted.
 */
char **ds_accel__nvcc_arguments(const struct ds_accel__cuda_archs *chosen);

#endif
