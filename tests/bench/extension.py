# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Compile DeepSpeed's ops, for the benchmarks that measure them."""
import contextlib
import os
import sys


def compile_extension(name, directory, sources, includes, flags, libraries):
    """Return the module, compiled into directory if it is not there yet. Paths are absolute. One
    process at a time may use the directory."""
    from torch.utils import cpp_extension
    for source in sources:
        if not os.path.exists(source):
            raise ImportError("there is no " + source)
    os.makedirs(directory, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(directory, "lock"))  # of a run that was ended; torch would wait for it
    with contextlib.redirect_stdout(sys.stderr):
        return cpp_extension.load(
            name=name, sources=sources, build_directory=directory, extra_include_paths=includes,
            extra_cflags=flags, extra_ldflags=libraries)
