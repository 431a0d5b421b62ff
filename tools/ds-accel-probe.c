/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The helper process in which plugins are probed. It is linked statically with the library's
 * objects, not with the shared library: it then starts faster, and needs no library search path,
 * which the dynamic linker ignores in set-uid programs. Its code is in core/host/probe_serve.c.
 */
int ds_accel__probe_main(int argc, char **argv, int (*conformance)(void));
int ds_accel__conformance_main(void);

#if defined(__SANITIZE_ADDRESS__)
/* In a pid namespace, the leak checker uses a pid that differs from its process's pid in /proc, and
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
