# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Compare the optimizers with torch's: torch_reference.py OPS LAYOUT INLINE

OPS is the directory of the ops, LAYOUT a file with lines "STRUCT MEMBER OFFSET SIZE", INLINE a
library with from_dlpack(), an inline function of <ds-accel/ops/dlpack.h>. Prints "ok NAME: MEASURED,
at most LIMIT" or "FAILED ..." for each comparison, and exits 1 if one failed.

How far results may differ is counted in units in the last place (ulps) of the largest number that
the element has had, because a parameter that comes close to 0 keeps the roundings of the time when
it was larger.

A step rounds a float32 parameter, and a second moment, at most twice on either side, so one step
adds 2 ulps at most to the difference, and 100 steps add 200. These roundings are independent: after
100 steps they make a standard deviation of at most sqrt(100 * 4 / 12) = 6 ulps, and five times that
is the limit for the worst of 10^5 elements. The first moment forgets its roundings with beta1: at
0.9 the deviation is sqrt(4 / 12 / (1 - 0.9^2)) = 1.4 ulps. A wrong formula differs by thousands.
"""
import ctypes
import sys

import numpy
import torch

from op_calls import NAMES, Ops, ulp

L2 = 1       # of Adam
DECAYED = 1  # of Adagrad
STEPS = 100
# Enough elements together for several threads; one element, and lengths that are no multiples of a
# vector's.
SHAPES = [(), (1,), (17,), (33, 65), (3, 5, 7, 11), (64001,)]
SHORT = SHAPES[:-1]

LIMIT = 30
LIMIT_FIRST = 7

directory, layout_file, inline_file = sys.argv[1:]
failures = 0


def check(name, measured, limit):
    global failures
    good = measured <= limit # also false for a NaN
    print("%s %s: %.6g, at most %g" % ("ok" if good else "FAILED", name, measured, limit),
          flush=True)
    failures += not good


# ---- the ops -------------------------------------------------------------------------------------

ops = Ops(directory, layout_file)
by_dlpack = ops.by_dlpack(ctypes.CDLL(inline_file).from_dlpack)


def load(name, place="", describe=None):
    prepare = ops.load(name, place, describe)
    return lambda *arguments, **options: prepare(*arguments, threads=3, **options)()


# ---- numbers -------------------------------------------------------------------------------------

def differing(ours, theirs, largest):
    """Return the greatest difference in ulps of the largest numbers so far."""
    return max(float(((a.double() - b.double()).abs() / ulp(c, a.dtype)).max())
               for a, b, c in zip(ours, theirs, largest))


def make(shapes, scale=1.0, dtype=torch.float32):
    return [(torch.randn(shape) * scale).to(dtype).contiguous() for shape in shapes]


def like(tensors, value=0.0, dtype=torch.float32):
    return [torch.full_like(tensor, value, dtype=dtype) for tensor in tensors]


def grow(largest, tensors):
    for old, new in zip(largest, tensors):
        torch.maximum(old, new.abs(), out=old)


# ---- float32 -------------------------------------------------------------------------------------

def compare(name, step, optimizer, parameters, states, names, limits, options):
    """Take 100 steps on both sides. options: a function of the step's number."""
    ours = [parameter.detach().clone() for parameter in parameters]
    largest = [parameter.detach().abs() for parameter in parameters]
    largest_states = [[state.abs() for state in of] for of in states]
    for number in range(1, STEPS + 1):
        gradients = make([parameter.shape for parameter in parameters],
                         10.0 ** ((number % 7) - 4))
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient.clone()
        optimizer.step()
        step(ours, gradients, states, step=number, **options(number))
        grow(largest, [parameter.detach() for parameter in parameters])
        for of, key in zip(largest_states, names):
            grow(of, [optimizer.state[parameter][key] for parameter in parameters])
    check(name + ", parameters in ulps",
          differing(ours, [parameter.detach() for parameter in parameters], largest), limits[0])
    for of, key, most, limit in zip(states, names, largest_states, limits[1:]):
        check("%s, %s in ulps" % (name, key),
              differing(of, [optimizer.state[parameter][key] for parameter in parameters], most),
              limit)


def leaves(shapes):
    return [tensor.requires_grad_() for tensor in make(shapes)]


def adam(op, step, kind, shapes, betas, decay, epsilon=1e-8, rate=1e-2, maximize=False):
    parameters = leaves(shapes)
    optimizer = kind(parameters, lr=rate, betas=betas, eps=epsilon, weight_decay=decay,
                     maximize=maximize, foreach=False)
    compare("%s, %s, betas %g %g, decay %g, epsilon %g, rate %g%s" %
            ((op, kind.__name__) + betas + (decay, epsilon, rate, maximize * ", maximize")),
            step, optimizer, parameters, [like(parameters), like(parameters)],
            ["exp_avg", "exp_avg_sq"], (LIMIT, LIMIT_FIRST, LIMIT),
            lambda number: dict(flags=L2 if kind is torch.optim.Adam else 0, learning_rate=rate,
                                weight_decay=decay, gradient_scale=-1.0 if maximize else 1.0,
                                beta1=betas[0], beta2=betas[1], epsilon=epsilon))


def adagrad(step, shapes, decay, rate_decay, initial, epsilon):
    parameters = leaves(shapes)
    optimizer = torch.optim.Adagrad(parameters, lr=0.05, lr_decay=rate_decay, weight_decay=decay,
                                    initial_accumulator_value=initial, eps=epsilon, foreach=False)
    compare("cpu_adagrad, decay %g, decay of the rate %g, initial %g, epsilon %g" %
            (decay, rate_decay, initial, epsilon), step, optimizer, parameters,
            [like(parameters, initial)], ["sum"], (LIMIT, LIMIT),
            lambda number: dict(flags=DECAYED, learning_rate=0.05 / (1 + (number - 1) * rate_decay),
                                weight_decay=decay, gradient_scale=1.0, epsilon=epsilon))


# ---- 16 bits -------------------------------------------------------------------------------------

def adam_narrow(op, step, kind, parameter_type, gradient_type, state_type):
    """Before each step torch's float32 copies get the values that are stored in 16 bits, so each
    step is compared alone. Both compute in float32, with a difference of a few float32 ulps of the
    largest term. Then both are rounded to the same number, or to neighbours where a tie is between
    them, which is so for few elements: a float32 ulp is 2^-16 of one of bfloat16, 2^-13 of one of
    float16."""
    stored = make(SHORT, 1.0, parameter_type)
    states = [like(stored, 0.0, state_type), like(stored, 0.0, state_type)]
    parameters = [tensor.float().clone().requires_grad_() for tensor in stored]
    rate, betas, decay, epsilon = 1e-2, (0.9, 0.98), 0.1, 1e-6
    optimizer = kind(parameters, lr=rate, betas=betas, eps=epsilon, weight_decay=decay,
                     foreach=False)
    worst = [0.0, 0.0, 0.0]
    neighbours = elements = 0
    for number in range(1, STEPS + 1):
        gradients = make(SHORT, 1.0, gradient_type)
        for index, parameter in enumerate(parameters):
            parameter.data.copy_(stored[index])
            parameter.grad = gradients[index].float()
            state = optimizer.state[parameter]
            if state:
                state["exp_avg"].copy_(states[0][index])
                state["exp_avg_sq"].copy_(states[1][index])
        before = [[array.double().abs() for array in arrays] for arrays in [stored] + states]
        optimizer.step()
        step(stored, gradients, states, step=number,
             flags=L2 if kind is torch.optim.Adam else 0, learning_rate=rate, weight_decay=decay,
             gradient_scale=1.0, beta1=betas[0], beta2=betas[1], epsilon=epsilon)
        for index, parameter in enumerate(parameters):
            state = optimizer.state[parameter]
            wanted = [parameter.detach(), state["exp_avg"], state["exp_avg_sq"]]
            given = [stored[index], states[0][index], states[1][index]]
            gradient = gradients[index].double().abs() + decay * before[0][index]
            terms = [1, gradient, gradient ** 2]
            for at in range(3):
                want = wanted[at].to(given[at].dtype)
                off = (given[at].double() - want.double()).abs()
                if at == 0:
                    neighbours += int((off > 0).sum())
                    elements += off.numel()
                off -= 4 * ulp(before[at][index] + terms[at], torch.float32)
                worst[at] = max(worst[at], float((off / ulp(want, want.dtype)).max()))
    name = "%s, %s, parameters %s, gradients %s, states %s" % (
        op, kind.__name__, NAMES[parameter_type], NAMES[gradient_type], NAMES[state_type])
    for at, what in enumerate(("parameters", "exp_avg", "exp_avg_sq")):
        check("%s, %s in ulps" % (name, what), worst[at], 1)
    if parameter_type is not torch.float32:
        check(name + ", part of the parameters that differ", neighbours / elements, 1e-4)


# ---- Lion ----------------------------------------------------------------------------------------

def lion(step, shapes, betas, decay):
    """Torch has no Lion. Where the sum below sign() is so close to 0 that rounding decides its
    sign, the results differ by twice the rate: such elements are left out from then on.

    All changes have the same size, so the roundings of a parameter are not independent. The limit
    is their sum, half an ulp each; the constants are rounded as the op rounds them."""
    rate = 1e-3
    narrow_rate, narrow_factor = (float(numpy.float32(of)) for of in (rate, 1 - rate * decay))
    parameters = make(shapes)
    moments = like(parameters)
    theirs = [parameter.numpy().astype(numpy.float64) for parameter in parameters]
    their_moments = [numpy.zeros(parameter.shape) for parameter in theirs]
    usable = [numpy.ones(parameter.shape, bool) for parameter in theirs]
    largest = [numpy.abs(parameter) for parameter in theirs]
    largest_moments = [numpy.zeros(parameter.shape) for parameter in theirs]
    for number in range(1, STEPS + 1):
        gradients = make(shapes, 10.0 ** ((number % 7) - 4))
        step(parameters, gradients, [moments], step=number, flags=0, learning_rate=rate,
             weight_decay=decay, gradient_scale=1.0, beta1=betas[0], beta2=betas[1])
        for i, gradient in enumerate(gradients):
            g = gradient.numpy().astype(numpy.float64)
            kept = betas[0] * their_moments[i]
            added = (1 - betas[0]) * g
            c = kept + added
            # The sum's terms have the roundings of the moments of all steps.
            usable[i] &= numpy.abs(c) > 2.0 ** -20 * (betas[0] * largest_moments[i] + abs(added))
            theirs[i] = theirs[i] * narrow_factor - narrow_rate * numpy.sign(c)
            their_moments[i] = betas[1] * their_moments[i] + (1 - betas[1]) * g
            largest[i] = numpy.maximum(largest[i], abs(theirs[i]))
            largest_moments[i] = numpy.maximum(largest_moments[i], abs(their_moments[i]))
    name = "cpu_lion, betas %g %g, decay %g" % (betas + (decay,))
    used = sum(int(of.sum()) for of in usable)
    check(name + ", part left out", 1 - used / sum(of.size for of in usable), 1e-3)

    def worst(ours, other, most):
        units = [ulp(torch.as_tensor(of), torch.float32).numpy() for of in most]
        return max(float(numpy.max(numpy.abs(a.numpy() - b) / unit, where=use, initial=0))
                   for a, b, unit, use in zip(ours, other, units, usable))
    check(name + ", parameters in ulps", worst(parameters, theirs, largest),
          STEPS * (1 if decay else 0.5))
    check(name + ", moments in ulps", worst(moments, their_moments, largest_moments), LIMIT)


# ---- DLPack --------------------------------------------------------------------------------------

def dlpack():
    """A step of tensors that DLPack describes is the same step, also of a part of a tensor."""
    options = dict(step=1, flags=0, learning_rate=1e-2, weight_decay=0.1, gradient_scale=1.0,
                   beta1=0.9, beta2=0.99, epsilon=1e-8)
    both = [load("cpu_adam"), load("cpu_adam", describe=by_dlpack)]
    for kind in (torch.float32, torch.float16, torch.bfloat16):
        whole = make([(7, 9), (0,), ()], 1.0, kind)
        arguments = [[[tensor.clone() for tensor in whole] for _ in range(4)] for _ in both]
        for step, (parameters, gradients, first, second) in zip(both, arguments):
            parameters[0], gradients[0] = parameters[0][2:5], gradients[0][2:5]
            first, second = like(parameters), like(parameters)
            step(parameters, gradients, [first, second], **options)
        for name, index in (("a part", 0), ("a number", 2)):
            check("DLPack, %s of %s" % (name, NAMES[kind]),
                  float((arguments[0][0][index].double() -
                         arguments[1][0][index].double()).abs().max()), 0)
        check("DLPack, %s changed" % NAMES[kind],
              0 if (arguments[1][0][0] != whole[0][2:5]).any() else 1, 0)
    narrow = torch.zeros(4, 4)
    for name, tensors, text in (
            ("columns", [narrow.t()[1:3], narrow[1:3], narrow[1:3], narrow[1:3]],
             "parameter is not contiguous: dimension 1 has the stride 4, wanted 1"),
            ("more elements", [narrow, torch.zeros(17), narrow, narrow],
             "gradient has 17 elements, the parameter 16"),
            ("another type", [narrow, narrow, narrow, torch.zeros(16, dtype=torch.float64)],
             "state[1] is of another type than state[0]")):
        try:
            both[1](*[[tensor] for tensor in tensors[:2]], [[tensor] for tensor in tensors[2:]],
                    **options)
            message = "no error"
        except RuntimeError as error:
            message = str(error)
        check("DLPack, %s: %s" % (name, message), 0 if text in message else 1, 0)


# ---- all -----------------------------------------------------------------------------------------

torch.manual_seed(20260101)
torch.set_num_threads(1)
step = load("cpu_adam")
fused = load("fused_adam", "cpu")
for kind in (torch.optim.Adam, torch.optim.AdamW):
    adam("cpu_adam", step, kind, SHAPES, (0.9, 0.999), 0.01)
    adam("cpu_adam", step, kind, SHORT, (0.9, 0.999), 0.0)
    adam("cpu_adam", step, kind, SHORT, (0.8, 0.9), 0.1, rate=1e-3)
    adam("cpu_adam", step, kind, SHORT, (0.0, 0.99), 0.1, epsilon=1e-6)
    adam("cpu_adam", step, kind, SHORT, (0.9, 0.95), 0.1, maximize=True)
    adam("fused_adam", fused, kind, SHAPES, (0.9, 0.999), 0.01)
    for narrow in (torch.bfloat16, torch.float16):
        adam_narrow("cpu_adam", step, kind, narrow, narrow, torch.float32)
        adam_narrow("cpu_adam", step, kind, narrow, narrow, narrow)
        adam_narrow("fused_adam", fused, kind, narrow, narrow, torch.float32)
    adam_narrow("cpu_adam", step, kind, torch.float32, torch.bfloat16, torch.float32)
step = load("cpu_adagrad")
# With a sum of 0 the first change is the sign of a gradient, and rounding decides it if the weight
# decay cancels the gradient.
adagrad(step, SHAPES, 0.1, 0.0, 0.1, 1e-10)
adagrad(step, SHORT, 0.0, 0.0, 0.0, 1e-10)
adagrad(step, SHORT, 0.01, 0.01, 0.1, 1e-6)
step = load("cpu_lion")
for betas in ((0.9, 0.99), (0.95, 0.98), (0.0, 0.9)):
    for decay in (0.0, 0.3):
        lion(step, SHAPES if betas == (0.9, 0.99) else SHORT, betas, decay)
dlpack()
print("end: %d failed" % failures)
sys.exit(failures > 0)
