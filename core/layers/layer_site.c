/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Finding the call site in the program, and describing it. */
#include "base/text.h"
#include "layers/layer.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdio.h>

static uintptr_t own_begin;
static uintptr_t own_end;

static int find_own_code(struct dl_phdr_info *info, size_t size, void *user_data)
{
    uintptr_t here = (uintptr_t)user_data;

    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && here >= begin &&
            here - begin < info->dlpi_phdr[i].p_memsz) {
            own_begin = begin;
            own_end = begin + info->dlpi_phdr[i].p_memsz;
            return 1;
        }
    }
    return 0;
}

static bool is_own(const void *address)
{
    return (uintptr_t)address >= own_begin && (uintptr_t)address < own_end;
}

const void *ds_accel__layer_caller(const void *address)
{
    void *frames[32];
    bool is_reached = false;
    int count;

    if (!is_own(address)) {
        return address; /* the usual case, because the public calls are inline */
    }
    count = backtrace(frames, ARRAY_SIZE(frames));
    /* Frames of a sanitizer, whose backtrace() replaces that of libc, may come before the frames of
     * this library. */
    for (int i = 0; i < count; i++) {
        if (is_own(frames[i])) {
            is_reached = true;
        } else if (is_reached) {
            return frames[i];
        }
    }
    return address;
}

void ds_accel__layer_site(const void *site, char *text, size_t text_size)
{
    /* site is a return address. The byte before it belongs to the call instruction, for which
     * addr2line shows the line of the call. */
    const char *address = site != NULL ? (const char *)site - 1 : NULL;
    const char *module;
    Dl_info info;

    if (address == NULL || dladdr(address, &info) == 0 || info.dli_fname == NULL) {
        snprintf(text, text_size, "%p", site);
        return;
    }
    module = strrchr(info.dli_fname, '/');
    module = module != NULL ? module + 1 : info.dli_fname;
    if (info.dli_sname != NULL) {
        snprintf(text, text_size, "%s+0x%tx (%s+0x%tx)", module,
                 address - (const char *)info.dli_fbase, info.dli_sname,
                 address - (const char *)info.dli_saddr);
    } else {
        snprintf(text, text_size, "%s+0x%tx", module, address - (const char *)info.dli_fbase);
    }
}

void ds_accel__layer_site_open(void)
{
    void *frame[1];

    dl_iterate_phdr(find_own_code, (void *)(uintptr_t)ds_accel__layer_site_open);
    /* backtrace() loads a library on first use: this call does so now instead of within a later
     * call */
    backtrace(frame, 1);
}
