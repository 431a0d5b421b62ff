#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""deepspeed_optimizers.py DEEPSPEED OPS LAYOUT SCRATCH THREADS SIZE...: CPU optimizers beside DeepSpeed's.

Compile the optimizers of a DeepSpeed checkout with the arguments of its own builders, then take
steps on both sides: first of the same numbers, which are compared, then of SIZE elements, which are
timed, in turn and on the same memory. Print a line for each op, types, size and number of threads.
DEEPSPEED: the checkout. OPS: the directory of the ops. LAYOUT: what tests/ops/layout.sh prints.
SCRATCH: where the compiled extensions are kept. THREADS: the greatest number of threads.
Exit 1 if results differ, 2 if the checkout cannot be used.
"""
import os
import platform
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "ops"))

SOURCES = {"cpu_adam": ["csrc/adam/cpu_adam.cpp", "csrc/adam/cpu_adam_impl.cpp"],
           "cpu_lion": ["csrc/lion/cpu_lion.cpp", "csrc/lion/cpu_lion_impl.cpp"],
           "cpu_adagrad": ["csrc/adagrad/cpu_adagrad.cpp"]}


def fail(text):
    print("deepspeed_optimizers.py: " + text, file=sys.stderr)
    sys.exit(2)


# Before torch is imported, which takes seconds and needs further packages.
for source in sum(SOURCES.values(), []):
    if not os.path.exists(os.path.join(sys.argv[1], source)):
        fail("%s has no %s: DEEPSPEED must be a checkout of DeepSpeed" % (sys.argv[1], source))

import torch

from extension import compile_extension
from op_calls import NAMES, Ops, ulp

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
# Types of parameters and gradients, and of states, that DeepSpeed's optimizers take.
TYPES = [(F32, F32), (BF16, F32), (BF16, BF16), (F16, F32), (F16, F16)]
RATE, BETA1, BETA2, EPSILON, DECAY = 1e-3, 0.9, 0.99, 1e-6, 0.01
STEPS = 10
# Where the sum that Lion takes the sign of is close to 0, rounding decides the sign.
LION_SHARE = 1e-4
COUNT = 100003


def parse_sizes(words):
    try:
        sizes = [int(float(word)) for word in words]
    except (ValueError, OverflowError):
        sizes = [0]
    if not sizes or min(sizes) < 1:
        fail("the sizes are %s; wanted numbers of elements such as 1e7" % (" ".join(words) or "none"))
    return sizes


# ---- both sides ----------------------------------------------------------------------------------

def simd_argument():
    """What DeepSpeed's builders define for this CPU, or None: its scalar loops."""
    with open("/proc/cpuinfo") as lines:
        flags = set(" ".join(line for line in lines if line.startswith("flags")).split())
    if "avx512f" in flags:
        return "-D__AVX512__"
    return "-D__AVX256__" if "avx2" in flags else None


def compile_theirs(checkout, scratch, op, simd):
    name = op if simd else op + "_scalar"
    arguments = ["-O3", "-std=c++17", "-g", "-Wno-reorder", "-march=native", "-fopenmp",
                 "-D__DISABLE_CUDA__", simd]
    return compile_extension(
        name, os.path.join(scratch, name),
        [os.path.join(checkout, source) for source in SOURCES[op]],
        [os.path.join(checkout, "csrc/includes")],
        [argument for argument in arguments if argument], ["-fopenmp"])


def their_step(module, op):
    """Return a function that takes a step: number, parameter, gradient, states."""
    if op == "cpu_adam":
        module.create_adam(0, RATE, BETA1, BETA2, EPSILON, DECAY, True, False)
        return lambda number, parameter, gradient, states: module.adam_update(
            0, number, RATE, BETA1, BETA2, EPSILON, DECAY, True, parameter, gradient, *states)
    if op == "cpu_lion":
        module.create_lion(0, RATE, BETA1, BETA2, DECAY, False)
        return lambda number, parameter, gradient, states: module.lion_update(
            0, number, RATE, BETA1, BETA2, DECAY, parameter, gradient, *states)
    module.create_adagrad(0, RATE, EPSILON, DECAY, False)
    return lambda number, parameter, gradient, states: module.adagrad_update(
        0, number, RATE, EPSILON, DECAY, parameter, gradient, *states)


def our_step(ops, op):
    """Return a function that prepares a step: number, parameter, gradient, states, threads."""
    prepare = ops.load(op)
    options = {"cpu_adam": dict(beta1=BETA1, beta2=BETA2, epsilon=EPSILON),
               "cpu_lion": dict(beta1=BETA1, beta2=BETA2),
               "cpu_adagrad": dict(epsilon=EPSILON)}[op]

    return lambda number, parameter, gradient, states, threads: prepare(
        [parameter], [gradient], [[state] for state in states], step=number, flags=0,
        learning_rate=RATE, weight_decay=DECAY, gradient_scale=1.0, threads=threads, **options)


# ---- numbers -------------------------------------------------------------------------------------

def share_beyond(ours, theirs, allowed, kind):
    """Return the share of elements that differ by more than is allowed, and than one ulp if they
    are stored in 16 bits."""
    ours, theirs = ours.double(), theirs.double()
    if kind is not F32:
        allowed = allowed + ulp(torch.maximum(ours.abs(), theirs.abs()), kind)
    return float((~((ours - theirs).abs() <= allowed)).double().mean())  # a NaN differs too


def compare(ours, theirs, kind, states):
    """Return the greatest share of elements that differ by more than roundings explain. Before each
    step both sides have the same numbers. DeepSpeed computes the bias correction in float32, which
    makes a relative error of 1e-5 in the change, whose size is the rate at most."""
    parameter = torch.randn(COUNT).to(kind)
    share = 0
    for number in range(1, STEPS + 1):
        gradient = torch.randn(COUNT).to(kind)
        our_parameter, our_states = parameter.clone(), [state.clone() for state in states]
        allowed = 4 * ulp(parameter.double().abs() + RATE, F32) + 1e-5 * RATE
        sizes = [state.double().abs() + gradient.double().abs() + gradient.double() ** 2
                 for state in states]
        ours(number, our_parameter, gradient, our_states, 2)()
        theirs(number, parameter, gradient, states)
        share = max(share, share_beyond(our_parameter, parameter, allowed, kind))
        for our_state, state, size in zip(our_states, states, sizes):
            share = max(share, share_beyond(our_state, state, 4 * ulp(size, F32), state.dtype))
    return share


# ---- time ----------------------------------------------------------------------------------------

def measure(ours, theirs, kind, states, threads):
    """Return the medians, in milliseconds, of our steps and of theirs, which alternate."""
    size = states[0].numel()
    parameter = torch.full((size,), 0.5, dtype=kind)
    gradient = torch.full((size,), 0.25, dtype=kind)
    torch.set_num_threads(threads)
    sides = (ours(1, parameter, gradient, states, threads),
             lambda: theirs(1, parameter, gradient, states))
    for side in sides:
        side()  # warms up
    times = ([], [])
    repeats = max(1, 10 ** 6 // size)
    for _ in range(7):
        for side, of in zip(sides, times):
            start = time.perf_counter()
            for _ in range(repeats):
                side()
            of.append((time.perf_counter() - start) / repeats)
    return [statistics.median(of) * 1e3 for of in times]


# ---- all -----------------------------------------------------------------------------------------

def main():
    checkout, directory, layout, scratch, threads = sys.argv[1:6]
    sizes = parse_sizes(sys.argv[6:])
    torch.manual_seed(20260101)
    ops = Ops(directory, layout)
    print("torch %s, %s, DeepSpeed's vectors: %s" % (
        torch.__version__, platform.machine(), (simd_argument() or "none").strip("-D_")))
    print("%-12s %-9s %-9s %11s %8s %10s %10s %6s" % (
        "op", "params", "states", "elements", "threads", "ours ms", "theirs ms", "ratio"))
    differing = slower = count = 0
    for op in SOURCES:
        try:
            theirs = exact = their_step(compile_theirs(checkout, scratch, op, simd_argument()), op)
            if op == "cpu_lion":  # DeepSpeed's vector code of Lion computes other numbers
                exact = their_step(compile_theirs(checkout, scratch, op, None), op)
        except Exception as error:  # of the compiler, or of another version's interface
            fail("%s of %s cannot be used: %s" % (op, checkout, error))
        ours = our_step(ops, op)
        for kind, state_kind in TYPES:
            def states(size, value):
                return [torch.full((size,), value, dtype=state_kind)
                        for _ in range(2 if op == "cpu_adam" else 1)]
            share = compare(ours, exact, kind, states(COUNT, 0.0))
            if not share <= (LION_SHARE if op == "cpu_lion" else 0):
                print("%s, %s, states %s: of the elements, %.3g differ" % (
                    op, NAMES[kind], NAMES[state_kind], share))
                differing += 1
            for size in sizes:
                for number in range(1, int(threads) + 1):
                    our_ms, their_ms = measure(ours, theirs, kind, states(size, 0.125), number)
                    print("%-12s %-9s %-9s %11d %8d %10.3f %10.3f %6.2f" % (
                        op, NAMES[kind], NAMES[state_kind], size, number, our_ms, their_ms,
                        their_ms / our_ms), flush=True)
                    slower += our_ms > their_ms
                    count += 1
    print("slower than DeepSpeed in %d of %d lines; %d of %d combinations compute other numbers" % (
        slower, count, differing, len(SOURCES) * len(TYPES)))
    sys.exit(differing > 0)


main()
