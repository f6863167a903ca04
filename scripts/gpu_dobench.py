#!/usr/bin/env python3
"""For gpu.sh: Triton's do_bench (median) called twice on the same PyTorch operation.

gpu_dobench.py FILE.jsonl PAIRS SECONDS   appends a line a pair until FILE has PAIRS, or SECONDS are over
"""
import json
import os
import sys
import time

try:
    import torch
    import triton
    from triton.testing import do_bench
except ImportError as missing:
    sys.exit(f"gpu.sh: dobench: {missing}")
if not torch.cuda.is_available():
    sys.exit("gpu.sh: dobench: PyTorch finds no GPU")


def operations():
    def random(*shape):
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    w, x, rows = random(4096, 4096), random(4096), random(2048, 4096)
    return [("gemv bf16 4096x4096", lambda: torch.mv(w, x)),
            ("softmax bf16 2048x4096", lambda: torch.softmax(rows, -1)),
            ("rms_norm bf16 2048x4096", lambda: torch.nn.functional.rms_norm(rows, (4096,)))]


def main(path, pairs, seconds):
    end = time.monotonic() + seconds
    with open(path, "a+") as file:
        file.seek(0)
        have = len(file.readlines())
        ops = operations()
        while have < pairs and time.monotonic() < end:
            op, call = ops[have % len(ops)]
            first, second = (do_bench(call, return_mode="median") for _ in range(2))
            facts = {"op": op, "first_ms": first, "second_ms": second, "ratio": second / first,
                     "triton": triton.__version__, "torch": torch.__version__, "device": torch.cuda.get_device_name()}
            file.write(json.dumps(facts) + os.linesep)
            file.flush()
            have += 1
    print(f"gpu.sh: dobench: {have} of {pairs} pairs", file=sys.stderr)
    return 0 if have >= pairs else 4


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
