/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Files that assemblers (--MD) and linkers (--dependency-file, -t) report. Each has a form of its
 * own, and GNU ld does not quote blanks:
 *
 *     op.so: \                          GNU ld, gold: one name per line, as it is
 *       /usr/lib/crti.o \
 *       other place/libfoo.a \
 *      other\ place/libfoo.a \          lld, assembler: quoted for make
 *     op.so: crti.o libfoo.a            mold, assembler: several names per line
 *     (libfoo.a)foo.o                   GNU ld 2.34 -t: members of archives
 *     -lfoo (/usr/lib/libfoo.so)
 *     libfoo.a(foo.o)                   gold, lld -t
 *
 * So of each line, the first of these readings that is the name of a file counts. A name that is
 * none is that of a temporary file, or a word of a message.
 *
 * A shared library is not an input of the file: the link takes from it only its name and versions
 * of symbols, and the dynamic loader checks those again. A linker script such as libc.so is one.
 */
#include "ops/listed.h"
#include "base/text.h"
#include "ops/depend.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define THIN "!<thin>\n"
#define THIN_SIZE 8u
#define MEMBER_END "`\n"
#define NAMES_LIMIT_BYTES ((size_t)16 << 20)

struct list {
    const char *directory;
    bool is_link;
    struct ds_accel__arguments *files;
};

/* ---- kinds of files -------------------------------------------------------------------------- */

static bool is_shared_library(int fd)
{
    unsigned char head[EI_NIDENT + 2];
    unsigned low;
    unsigned high;

    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
        memcmp(head, ELFMAG, SELFMAG) != 0) {
        return false;
    }
    low = head[EI_NIDENT + (head[EI_DATA] == ELFDATA2MSB)];
    high = head[EI_NIDENT + (head[EI_DATA] != ELFDATA2MSB)];
    return (low | high << 8) == ET_DYN;
}

static bool is_thin_archive(int fd)
{
    char magic[THIN_SIZE];

    return pread(fd, magic, THIN_SIZE, 0) == THIN_SIZE && memcmp(magic, THIN, THIN_SIZE) == 0;
}

/* The header of a member of an archive. */
struct member {
    char name[16];
    char other[32];
    char size[10];
    char end[2];
};

static bool add(struct list *list, const char *name, size_t length);

/* Add the file of a member, whose name is relative to the archive's directory. */
static void add_member(const char *archive, const char *name, size_t length, struct list *list)
{
    struct list members = {list->directory, false, list->files};
    const char *slash = strrchr(archive, '/');
    char *path =
        name[0] == '/' || slash == NULL
            ? strndup(name, length)
            : ds_accel__format("%.*s/%.*s", (int)(slash - archive), archive, (int)length, name);

    if (path != NULL && length > 0) {
        add(&members, path, strlen(path));
    }
    list->files->failed = list->files->failed || path == NULL;
    free(path);
}

/* The table of long names, as a new string; NULL: memory is exhausted, or it is too large. */
static char *read_names(int fd, off_t at, uint64_t size_bytes, struct list *list)
{
    char *names = size_bytes < NAMES_LIMIT_BYTES ? calloc(1, (size_t)size_bytes + 1) : NULL;

    if (names == NULL || pread(fd, names, (size_t)size_bytes, at) != (ssize_t)size_bytes) {
        list->files->failed = list->files->failed || names == NULL;
        free(names);
        names = NULL;
    }
    return names;
}

/* Add the members of a thin archive, which has their names only. */
static void add_members(const char *archive, int fd, struct list *list)
{
    struct member member;
    char *names = NULL;
    size_t names_size = 0;
    off_t at = THIN_SIZE;

    while (pread(fd, &member, sizeof(member), at) == (ssize_t)sizeof(member) &&
           memcmp(member.end, MEMBER_END, sizeof(member.end)) == 0 &&
           isdigit((unsigned char)member.size[0])) {
        uint64_t size = strtoull(member.size, NULL, 10); /* stops at the end of the header */
        bool is_long = member.name[0] == '/' && isdigit((unsigned char)member.name[1]);
        bool is_table = member.name[0] == '/' && !is_long; /* of symbols, or of names */

        at += (off_t)sizeof(member);
        if (is_table && member.name[1] == '/' && names == NULL) {
            names = read_names(fd, at, size, list);
            names_size = names != NULL ? (size_t)size : 0;
        }
        if (is_long) {
            size_t offset = strtoull(member.name + 1, NULL, 10);

            if (offset < names_size) {
                size_t length = strcspn(names + offset, "\n");

                length -= length > 0 && names[offset + length - 1] == '/';
                add_member(archive, names + offset, length, list);
            }
        } else if (!is_table) {
            size_t length = 0;

            while (length < sizeof(member.name) && member.name[length] != '/') {
                length++;
            }
            add_member(archive, member.name, length, list);
        }
        at += is_table ? (off_t)(size + (size & 1)) : 0;
    }
    free(names);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Add a file. False: there is none of this name. */
static bool add(struct list *list, const char *name, size_t length)
{
    char *path;
    struct stat info;
    bool is_file;
    int fd;

    if (length == 0) {
        return false;
    }
    path = name[0] == '/' ? strndup(name, length)
                          : ds_accel__format("%s/%.*s", list->directory, (int)length, name);
    if (path == NULL) {
        list->files->failed = true;
        return false;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    /* One that cannot be read is reported when its digest is made. */
    is_file = fd >= 0 ? fstat(fd, &info) == 0 && S_ISREG(info.st_mode)
                      : stat(path, &info) == 0 && S_ISREG(info.st_mode);
    if (is_file && !(list->is_link && fd >= 0 && is_shared_library(fd))) {
        ds_accel__arguments_add(list->files, "%.*s", (int)length, name);
        if (list->is_link && fd >= 0 && is_thin_archive(fd)) {
            /* As the archive's name, those of its members may be relative. */
            char *archive = strndup(name, length);

            if (archive != NULL) {
                add_members(archive, fd, list);
            }
            list->files->failed = list->files->failed || archive == NULL;
            free(archive);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    free(path);
    return is_file;
}

/* Add the files of "(ARCHIVE)MEMBER", "ARCHIVE(MEMBER)" or "-lNAME (FILE)". */
static bool add_bracketed(struct list *list, const char *line, size_t length)
{
    const char *open = memchr(line, '(', length);
    const char *close = memrchr(line, ')', length);

    if (open == NULL || close == NULL || close < open) {
        return false;
    }
    return (open > line && add(list, line, (size_t)(open - line))) ||
           add(list, open + 1, (size_t)(close - open) - 1);
}

static void add_words(struct list *list, const char *line, size_t length)
{
    struct ds_accel__arguments words = {0};
    char **names;

    ds_accel__depend_words(line, length, &words);
    names = ds_accel__arguments_take(&words);
    for (size_t i = 0; names != NULL && names[i] != NULL; i++) {
        add(list, names[i], strlen(names[i]));
    }
    list->files->failed = list->files->failed || names == NULL;
    ds_accel__arguments_free(names);
}

void ds_accel__listed_add(const char *text, const char *directory, bool is_link,
                          struct ds_accel__arguments *files)
{
    struct list list = {directory, is_link, files};

    for (const char *line = text; *line != '\0';) {
        size_t whole = strcspn(line, "\n");
        size_t length = whole;
        const char *begin = line;

        while (length > 0 && ds_accel__is_blank(*begin)) {
            begin++;
            length--;
        }
        if (length > 1 && begin[length - 1] == '\\' && ds_accel__is_blank(begin[length - 2])) {
            length -= 2; /* the next line continues the rule */
        }
        if (!add(&list, begin, length) && !add_bracketed(&list, begin, length)) {
            add_words(&list, begin, length);
        }
        line += whole + (line[whole] != '\0');
    }
}
