/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The helper process in which plugins are probed. It is linked with the library's own objects and
 * not with the library: it starts sooner, and needs no search path, which the dynamic linker would
 * ignore where a set-uid program detects. core/host/probe_serve.c is all of it.
 */
int ds_accel__probe_main(int argc, char **argv, int (*conformance)(void));
int ds_accel__conformance_main(void);

#if defined(__SANITIZE_ADDRESS__)
/* In a pid namespace the leak checker looks for its process under another number in /proc, and
 * fails. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}
#endif

int main(int argc, char **argv)
{
    return ds_accel__probe_main(argc, argv, ds_accel__conformance_main);
}
