#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Checks of ds-accel run that a shell cannot make; each check that fails is printed.

    launch.py bytes PROGRAM DIR     arguments and environment arrive as bytes
    launch.py pty PROGRAM DIR       terminals
"""
import os
import pty
import random
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import fcntl

LIMIT_S = 60  # of every wait; only a failure takes so long
STRANGE = [
    b"", b" ", b"a b", b'"quoted" \'both\'', b"new\nline\n", b"$HOME `id` $(id) ${x}", b"\\ \\n",
    b"* ? [a] ~ # ! & | ; < >", b"\xff\xfe\x80 \xc3\x28", b"--flag=x", b"-", b"--", b"\t\r\x01\x7f",
    b"=", b"%s %n %%", "\u00e4\u4e2d".encode(),
]
SET_BY_LAUNCHER = {
    b"RANK", b"LOCAL_RANK", b"WORLD_SIZE", b"LOCAL_SIZE", b"LOCAL_WORLD_SIZE", b"CROSS_RANK",
    b"CROSS_SIZE", b"MASTER_ADDR", b"MASTER_PORT", b"MOCK_VISIBLE_DEVICES", b"MOCK_RUNTIME",
    b"DS_ACCEL_DECISION",
}
failures = 0


def check(name, wanted, given):
    """Report a difference."""
    global failures
    if wanted != given:
        failures += 1
        print(f"FAILED: {name}\n    wanted: {wanted!r:.300}\n    given:  {given!r:.300}")


def command(program, count, *arguments, options=()):
    """The command line of a job."""
    return [program, "run", "-a", "mock", "--master_port", "auto", "--num_gpus", str(count),
            "--no_python", "--no_local_rank", *options, *arguments]


# ---- bytes ---------------------------------------------------------------------------------------

def check_bytes(program, directory):
    """A megabyte of arguments, and strange environment variables."""
    source = random.Random(1)
    noise = bytes(source.randrange(1, 256) for _ in range(100000))
    script = b'cat /proc/$$/cmdline >"$0/arguments.$RANK"; cat /proc/$$/environ >"$0/environment.$RANK"'
    arguments = [b"sh", b"-c", script, directory.encode(), *STRANGE, *[noise] * 10]
    environment = {b"V%d" % i: value for i, value in enumerate([*STRANGE, noise])}
    environment.update({b"PATH": os.environb[b"PATH"], b"strange \xff name": b"x", b"DS_ACCEL_CACHE": b"off",
                        b"DS_ACCEL_MOCK_DEVICE_COUNT": b"2", b"RANKS": b"a name that begins like RANK"})
    done = subprocess.run(command(program, 2, *arguments), env=environment, timeout=LIMIT_S, check=False)
    check("exit code", 0, done.returncode)
    for rank in (b"0", b"1"):
        with open(os.path.join(directory.encode(), b"arguments." + rank), "rb") as file:
            check("arguments", b"\0".join(arguments) + b"\0", file.read())
        with open(os.path.join(directory.encode(), b"environment." + rank), "rb") as file:
            entries = file.read()
        check("the end of the environment", b"\0", entries[-1:])
        given = dict(entry.split(b"=", 1) for entry in entries[:-1].split(b"\0"))
        check("each variable is set once", len(given), len(entries[:-1].split(b"\0")))
        check("RANK", rank, given.get(b"RANK"))
        check("new variables", set(), set(given) - set(environment) - SET_BY_LAUNCHER)
        for name, value in environment.items():
            check(f"variable {name!r}", value, given.get(name))


if __name__ == "__main__":
    {"bytes": check_bytes}[sys.argv[1]](*sys.argv[2:])
    sys.exit(failures > 0)
