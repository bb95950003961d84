# SPDX-License-Identifier: Apache-2.0
"""What the tap costs a worker: memory and wake-ups while idle and while it holds the runtime's
rings for a flight recorder, processor time while streaming.

    tests/bench/tap_cost.py build/release

Prints figures and asserts nothing. The simulated runtime's own fetch is timed apart.
"""

import os
import sys
import tempfile
import time

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/release")
os.environ.update(NT_TAP_LIBRARY=f"{BUILD}/lib/libneurontrace_tap.so",
                  NT_TAP_HOST=f"{BUILD}/tests/integration/tap_host",
                  NT_FAKE_NRT_DIR=f"{BUILD}/tests/fake_nrt")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from tap_agent import STOPPED, Agent  # noqa: E402
from tap_worker import CAPTURE, Worker  # noqa: E402

IDLE_SECONDS = 5
STREAM_SECONDS = 5
BURSTS_A_SECOND = 50


def memory_kib(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        sizes = {line.split()[0]: int(line.split()[1]) for line in file if line.split()[0].endswith(":")}
    return sizes["Rss:"], sizes["Private_Clean:"] + sizes["Private_Dirty:"]


def tap_thread(pid):
    """Processor time in ns and voluntary context switches of the tap's thread."""
    for task in os.listdir(f"/proc/{pid}/task"):
        base = f"/proc/{pid}/task/{task}"
        with open(f"{base}/comm", encoding="ascii") as comm:
            if comm.read().strip() != "neurontrace":
                continue
        with open(f"{base}/schedstat", encoding="ascii") as schedstat:
            used_ns = int(schedstat.read().split()[0])
        with open(f"{base}/status", encoding="ascii") as status:
            switches = next(int(line.split()[1]) for line in status if line.startswith("voluntary"))
        return used_ns, switches
    raise AssertionError("the tap has no thread")


def measure_idle(directory):
    bare = Worker(f"{directory}/none", preload=False)
    bare.ask("init")
    agent = Agent(f"{directory}/idle")
    worker = Worker(agent.path)
    worker.ask("init")
    agent.accept().wait_state("idle")
    (rss, private), (rss_bare, private_bare) = memory_kib(worker.pid), memory_kib(bare.pid)
    used, switches = tap_thread(worker.pid)
    time.sleep(IDLE_SECONDS)  # tidy: allow(sleep) the time over which idleness is measured
    used_after, switches_after = tap_thread(worker.pid)
    print(f"idle: {rss - rss_bare} KiB resident, {private - private_bare} KiB of it private; in {IDLE_SECONDS} s "
          f"{switches_after - switches} wake-ups, {used_after - used} ns of processor time")
    for process in (bare, worker):
        process.close()
    agent.stop()


def measure_holding(directory, rate=20_000):
    """An armed flight recorder over a worker that records `rate` events a second, then a snapshot."""
    agent = Agent(f"{directory}/hold")
    worker = Worker(agent.path)
    worker.ask("init")
    connection = agent.accept()
    connection.hold(CAPTURE)
    connection.wait_state("holding")
    connection.buffer.read()
    worker.emit(0, 1000)
    time.sleep(3)  # tidy: allow(sleep) the ring's pages are given back meanwhile
    (used, switches), fetches = tap_thread(worker.pid), connection.buffer.counters["fetches"]
    events = 0
    begin = time.monotonic()
    while time.monotonic() - begin < IDLE_SECONDS:
        events += worker.emit(0, rate // BURSTS_A_SECOND)[0]
        time.sleep(1 / BURSTS_A_SECOND)  # tidy: allow(sleep) keeps the rate of the load
    used_after, switches_after = tap_thread(worker.pid)
    seconds = time.monotonic() - begin
    print(f"holding, {events / seconds:.0f} events/s into one ring: in {seconds:.0f} s {switches_after - switches} "
          f"wake-ups, {used_after - used} ns of processor time, "
          f"{connection.buffer.counters['fetches'] - fetches} fetches")
    snapshot = b"S" * 16
    begin, collected = time.monotonic(), 0
    connection.collect(CAPTURE, snapshot)
    stopped = False
    while not stopped:
        for record in connection.buffer.read(check=False):
            collected += record.payload.count(b'"nc_local_id"')
            stopped = stopped or (record.type == STOPPED and record.capture_id == snapshot)
    print(f"collected: {collected} events of the ring's 65536 in {1000 * (time.monotonic() - begin):.0f} ms")
    worker.close()
    agent.stop()


def measure_streaming(directory, cores, rate):
    agent = Agent(f"{directory}/stream-{cores}-{rate}")
    worker = Worker(agent.path, NEURON_RT_NUM_CORES=str(cores))
    worker.ask("init")
    connection = agent.accept()
    connection.start(CAPTURE)
    connection.answer(2)
    buffer = connection.buffer
    before, (used, _), begin = buffer.counters, tap_thread(worker.pid), time.monotonic()
    events = 0
    for burst in range(STREAM_SECONDS * BURSTS_A_SECOND):
        events += worker.emit(0, rate // BURSTS_A_SECOND)[0]
        buffer.read_pos = buffer.write_pos
        pause = begin + burst / BURSTS_A_SECOND - time.monotonic()
        time.sleep(max(0, pause))  # tidy: allow(sleep) keeps the rate of the load
    seconds = time.monotonic() - begin
    percent = 100 / (seconds * 1e9)
    cost = {key: (value - before[key]) * percent for key, value in buffer.counters.items()}
    thread = (tap_thread(worker.pid)[0] - used) * percent
    print(f"{cores} cores, {events / seconds:.0f} events/s on one: {thread:.2f} % of a core, drain rounds "
          f"{cost['drain_ns']:.2f} %, {cost['fetch_ns']:.2f} % of the time in fetches")
    worker.close()
    agent.stop()


def main():
    with tempfile.TemporaryDirectory() as directory:
        measure_idle(directory)
        measure_holding(directory)
        for cores, rate in ((1, 2000), (1, 85000), (64, 2000), (64, 85000)):
            measure_streaming(directory, cores, rate)


if __name__ == "__main__":
    main()
