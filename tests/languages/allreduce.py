# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""A torch.distributed program, as it is written for deepspeed and for torchrun: both start it."""
import argparse
import os

import torch
import torch.distributed as dist


def main():
    """Sum a tensor over all ranks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", "--local-rank", type=int, default=int(os.environ.get("LOCAL_RANK", -1)))
    parser.add_argument("--value", type=float, default=1.0)
    args = parser.parse_args()

    torch.set_num_threads(1)
    dist.init_process_group("gloo")  # from RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
    tensor = torch.full((4,), args.value * (dist.get_rank() + 1))
    dist.all_reduce(tensor)
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}, local rank {args.local_rank}: {tensor.sum().item():g}")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
