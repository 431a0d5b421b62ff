#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Record the allocations and frees of real programs, for compare.c: record.py DIRECTORY

Debian's torch (1.13) has no CUDA, so the tensors are in host memory. torch's profiler reports their
sizes and their order, which would be the same on a device, except for the kernels' own memory. A
line is the size of an allocation, or "-" and the number of the freed allocation.
"""
import sys

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

STEP_LIMIT = 6000


def record(run):
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as profiler:
        run()
    events = []
    nodes = list(profiler.profiler.kineto_results.experimental_event_tree())
    while nodes:
        node = nodes.pop()
        nodes.extend(node.children)
        if "Alloc" in str(node.tag):
            fields = node.extra_fields
            events.append((node.start_time_ns, fields.ptr, fields.alloc_size))
    return sorted(events, key=lambda event: event[0])


def write(path, remark, events):
    live = {}
    count = 0
    with open(path, "w", encoding="ascii") as out:
        out.write(f"# SPDX-License-Identifier: Apache-2.0\n# Copyright (c) 2026 the ds-accel authors\n"
                  f"# {remark}; by record.py\n")
        for _, address, size in events[:STEP_LIMIT]:
            if size > 0:
                live[address] = count
                count += 1
                out.write(f"{size}\n")
            elif address in live:
                out.write(f"-{live.pop(address)}\n")


def train(model, optimizer, steps, batch):
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        model(batch(step)).float().pow(2).mean().backward()
        optimizer.step()


def perceptron():
    model = nn.Sequential(*[layer for _ in range(5) for layer in (nn.Linear(600, 600), nn.GELU())])
    train(model, torch.optim.Adam(model.parameters()), 4, lambda step: torch.randn(500, 600))


def language():
    layer = nn.TransformerEncoderLayer(256, 8, 1024, dropout=0.1, batch_first=True)
    model = nn.Sequential(nn.Embedding(2000, 256), nn.TransformerEncoder(layer, 2),
                          nn.Linear(256, 2000))
    lengths = [96, 130, 61, 160, 77]
    train(model, torch.optim.AdamW(model.parameters()), 5,
          lambda step: torch.randint(0, 2000, (3, lengths[step])))


def images():
    widths = [3, 32, 64, 96]
    model = nn.Sequential(*[layer for i in range(3) for layer in (
        nn.Conv2d(widths[i], widths[i + 1], 3, padding=1, stride=1 + i % 2),
        nn.BatchNorm2d(widths[i + 1]), nn.ReLU())], nn.AdaptiveAvgPool2d(1))
    train(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), 4,
          lambda step: torch.randn(4 + step % 3, 3, 48, 48))


def sequences():
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(128, 256)

        def forward(self, batch):
            state = None
            for part in batch:
                state = self.cell(part, state)
            return state[0]

    model = Last()
    lengths = [12, 30, 7, 24]
    train(model, torch.optim.Adam(model.parameters()), 4,
          lambda step: torch.randn(lengths[step], 64, 128))


def decoding():
    width, heads = 256, 8
    project = nn.Linear(width, 3 * width)
    caches = {}
    with torch.no_grad():
        for step in range(150):
            who = (step * 7) % 5
            if step % 60 == 59:
                caches.pop(who, None)
            tokens = 1 if who in caches else 150 + 40 * who
            query, key, value = project(torch.randn(4, tokens, width)).chunk(3, dim=-1)
            if who in caches:
                key = torch.cat([caches[who][0], key], dim=1)
                value = torch.cat([caches[who][1], value], dim=1)
            caches[who] = (key.contiguous(), value.contiguous())
            scores = torch.softmax(query @ key.transpose(1, 2) / heads, dim=-1)
            del query
            _ = scores @ value


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    for run in (perceptron, language, images, sequences, decoding):
        write(f"{sys.argv[1]}/{run.__name__}.txt", f"{run.__name__} of torch {torch.__version__}",
              record(run))


if __name__ == "__main__":
    main()
