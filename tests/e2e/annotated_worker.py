# SPDX-License-Identifier: Apache-2.0
"""A worker that annotates its steps until its standard input ends: `annotated_worker.py package|stand-in TRUTH RUNTIME`.
Each line of TRUTH is a step: its number, the program's time before and after its begin, and before and after its
end."""
import ctypes
import sys
import threading
import time

import nvtx_stand_in

STEP_S = 0.01


def main():
    kind, truth, runtime_path = sys.argv[1:]
    # The runtime, through the tap that is preloaded.
    ctypes.CDLL(runtime_path, ctypes.RTLD_GLOBAL)
    if ctypes.CDLL(None).nrt_init(1, b"", b"") != 0:
        sys.exit("nrt_init failed")
    nvtx = nvtx_stand_in.Package() if kind == "package" else nvtx_stand_in.Nvtx()
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    with open(truth, "w", encoding="utf-8") as out:
        step = 0
        print("ready", flush=True)
        while not ended.is_set():
            stamps = [time.time_ns()]
            nvtx.push(f"step {step}")
            stamps.append(time.time_ns())
            nvtx.push("forward", domain=True, category=True, payload=step)
            nvtx.mark("half")
            ended.wait(STEP_S)
            nvtx.pop(domain=True)
            stamps.append(time.time_ns())
            nvtx.pop()
            stamps.append(time.time_ns())
            print(step, *stamps, file=out, flush=True)
            step += 1
    ctypes.CDLL(None).nrt_close()


if __name__ == "__main__":
    main()
