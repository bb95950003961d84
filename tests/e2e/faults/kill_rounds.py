# SPDX-License-Identifier: Apache-2.0
"""A fleet whose processes are killed or stopped at random moments and started again, and whose links go bad, within one
capture.

Used by kill_rounds_test.py and by scripts/soak. One seed gives the same victims, moments and pauses; how the processes
interleave is the machine's. Every fault is written to `schedule.log` of the fleet's directory.
"""

import collections
import heapq
import itertools
import random
import signal
import time
from pathlib import Path

from account import check_account, outcomes_of
from fleet import Fleet, FleetError, wait_until
from namespaces import Link

PAGE_BYTES = 4096
POLL_SECONDS = 0.01


def resident_bytes(pid):
    """What a process occupies now; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * PAGE_BYTES
    except (OSError, IndexError):
        return 0


class KilledFleet:
    """Instances i-0001 … with workers of one core each; `run` does harm to them and `finish` checks the account. With
    `bad_links` each agent is in a network of its own; that needs namespaces.enter()."""

    def __init__(self, build_dir, seed, instances=4, workers=2, events_per_second=300, work_dir=None, bad_links=False):
        self.seed = seed
        self.random = random.Random(seed)
        self.fleet = Fleet(build_dir, work_dir)
        self.instances = [f"i-{i:04x}" for i in range(1, instances + 1)]
        self.workers_per_instance = workers
        self.events_per_second = events_per_second
        self.bad_links = bad_links
        self.links = {}
        self.alive = {}     # (instance, slot) -> Worker
        self.killed = []    # workers that were
        self.faults = {"worker killed": 0, "agent killed": 0, "aggregator killed": 0, "stopped for a while": 0,
                       "link cut or bad": 0}
        self.rss_peak = {"agent": 0, "aggregator": 0}
        self.violations = []
        self.capture_id = None
        self.events_seen = 0
        self._workers_seen = set()  # in the capture's record: they must stay there
        self._pending = []  # heap of (moment, number, action): what starts again, and when
        self._numbers = itertools.count()
        self._log = open(self.fleet.dir / "schedule.log", "a", encoding="utf-8")  # as long as the fleet lives
        self._began = time.monotonic()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _, daemon in self.daemons():
            if daemon is not None:
                daemon.signal(signal.SIGCONT)
        self.fleet.shut_down()
        for link in self.links.values():
            link.close()
        self._log.close()

    def log(self, text):
        self._log.write(f"{time.monotonic() - self._began:8.3f} {text}\n")
        self._log.flush()

    # -- what is there -------------------------------------------------------------------------------------------

    def start(self):
        if self.bad_links:
            self.fleet.listen = "0.0.0.0:0"
        self.fleet.start_aggregator()
        for number, instance in enumerate(self.instances, 1):
            if self.bad_links:
                self.links[instance] = Link(self.fleet, number, self.random.randrange(1 << 32))
            self._start_agent(instance)
            for slot in range(self.workers_per_instance):
                self._start_worker(instance, slot)
        self.fleet.wait_for_workers(len(self.alive))
        self.capture_id = self.fleet.cli("capture", "start", "--name", f"seed {self.seed}").stdout.strip()
        self.wait_for_progress()

    def _start_agent(self, instance):
        if not self.bad_links:
            self.fleet.start_agent(instance)
            return
        link, port = self.links[instance], self.fleet.address.rsplit(":", 1)[1]
        self.fleet.start_agent(instance, prefix=link.prefix, wrapped=False, aggregator=f"{link.near}:{port}")

    def _start_worker(self, instance, slot):
        rank = self.instances.index(instance) * self.workers_per_instance + slot
        self.alive[(instance, slot)] = self.fleet.start_worker(
            instance, "--cores", 1, "--rank-start", rank, "--world-size",
            len(self.instances) * self.workers_per_instance, "--mix", "bare", "--events-per-second",
            self.events_per_second, "--seed", self.seed, ready=False)

    def daemons(self):
        return [("aggregator", self.fleet.aggregator), *(("agent", agent) for agent in self.fleet.agents.values())]

    # -- harm ----------------------------------------------------------------------------------------------------

    def run(self, rounds=None, seconds=None, pause=0.5, progress_every=25, on_round=lambda number: None):
        """Does harm in as many rounds, or until the time is up. `pause` is the mean time between them."""
        end = time.monotonic() + seconds if seconds else float("inf")
        for number in range(rounds) if rounds else itertools.count():
            if time.monotonic() >= end:
                break
            self._pass_until(time.monotonic() + self.random.uniform(0, 2 * pause))
            self._do_harm()
            on_round(number)
            if (number + 1) % progress_every == 0:
                self._heal()
                self.wait_for_progress()
        self._heal()

    def _do_harm(self):
        kinds = {"worker": 6, "agent": 6, "aggregator": 4, "stop": 2, "link": 6 if self.links else 0}
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        lasts = self.random.choice((0, self.random.uniform(0, 1)))
        if kind == "worker":
            place = self.random.choice(sorted(self.alive))
            victim = self.alive[place]
            self._kill(kind, victim, lasts, lambda: self._start_worker(*place))
        elif kind == "agent":
            instance = self.random.choice(self.instances)
            self._kill(kind, self.fleet.agents[instance], lasts, lambda: self._start_agent(instance))
        elif kind == "aggregator":
            self._kill(kind, self.fleet.aggregator, lasts, self.fleet.start_aggregator)
        elif kind == "stop":
            victim = self.random.choice([daemon for _, daemon in self.daemons()])
            self.log(f"stop {victim.name} pid {victim.pid} for {2 * lasts:.3f} s")
            victim.signal(signal.SIGSTOP)
            self.faults["stopped for a while"] += 1
            self._later(2 * lasts, lambda: victim.signal(signal.SIGCONT))
        else:
            self._spoil_link(lasts)

    def _kill(self, kind, victim, back_in, again):
        if not victim.running():
            return  # killed before, and not back yet
        self.log(f"kill {victim.name} pid {victim.pid}, back in {back_in:.3f} s")
        victim.kill()
        self.faults[f"{kind} killed"] += 1
        if kind == "worker":
            self.killed.append(victim)
        self._later(back_in, again)

    def _spoil_link(self, lasts):
        instance = self.random.choice(self.instances)
        link = self.links[instance]
        settings = self.random.choice((
            {"cut": 1}, {"loss": self.random.uniform(0, 0.2)}, {"delay_us": self.random.randrange(50_000)},
            {"delay_us": 5_000, "jitter_us": 10_000, "duplicate": 0.05}))
        self.log(f"link of {instance}: {settings} for {3 * lasts:.3f} s")
        link.set(**settings)
        self.faults["link cut or bad"] += 1
        self._later(3 * lasts, link.repair)

    def _later(self, seconds, action):
        heapq.heappush(self._pending, (time.monotonic() + seconds, next(self._numbers), action))

    def _pass_until(self, moment):
        """Starts again what is due, and watches over the others meanwhile."""
        while True:
            now = time.monotonic()
            while self._pending and self._pending[0][0] <= now:
                heapq.heappop(self._pending)[2]()
            self._watch()
            if now >= moment:
                return
            time.sleep(POLL_SECONDS)  # tidy: poll

    def _heal(self):
        """Everything is up again."""
        while self._pending:
            self._pass_until(self._pending[0][0])

    def _watch(self):
        """Nothing ends by itself, and nothing grows without bound."""
        for worker in self.alive.values():
            if worker.popen.poll() not in (None, -9):
                raise FleetError(f"{worker.name} ended by itself with {worker.popen.returncode}; see {worker.log}")
        for kind, daemon in self.daemons():
            self.rss_peak[kind] = max(self.rss_peak[kind], resident_bytes(daemon.popen.pid))
            if daemon.popen.poll() not in (None, -9):
                raise FleetError(f"{daemon.name} ended by itself with {daemon.popen.returncode}; see {daemon.log}")

    def wait_for_progress(self, seconds=30):
        """Everybody is there, and events of everybody who lives get stored."""
        self.fleet.wait_for_status(len(self.instances), seconds)
        pids = {(worker.instance_id, worker.pid) for worker in self.alive.values()}
        before, silent = None, pids

        def flows():
            nonlocal before, silent
            capture = self.fleet.show_capture(self.capture_id)
            events = collections.Counter()
            for stream in capture["streams"]:
                worker = stream["identity"]["worker"]
                events[(worker["instance_id"], worker["pid"])] += int(stream["events"])
            self._workers_seen |= outcomes_of(capture).keys()
            total = int(capture["events"])
            if total < self.events_seen:
                self.violations.append(f"{self.events_seen} events were stored, now {total} are")
            self.events_seen = total
            before = before or events
            silent = {pid for pid in pids if events[pid] <= before[pid]}
            return not silent
        try:
            wait_until(flows, f"events of all {len(pids)} workers", seconds)
        except FleetError as error:
            states = {(w["identity"]["instance_id"], w["identity"]["pid"]): w["state"]
                      for w in self.fleet.list_workers()}
            what = "; ".join(f"{pid}: {states.get(pid, 'not listed')}" for pid in sorted(silent))
            raise FleetError(f"{error}: nothing of {what}") from None

    # -- the account ---------------------------------------------------------------------------------------------

    def finish(self):
        """Stops the capture, ends the workers and returns the account; its violations include those seen before."""
        self.wait_for_progress()
        done = self.fleet.cli("capture", "stop", self.capture_id, check=False)
        if done.returncode not in (0, 3):
            self.violations.append(f"capture stop: exit code {done.returncode}: {done.stdout}{done.stderr}")
        capture = self.fleet.show_capture(self.capture_id)
        forgotten = self._workers_seen - outcomes_of(capture).keys()
        if forgotten:
            self.violations.append(f"workers that the capture knew and forgot: {forgotten}")
        for worker in self.alive.values():
            if worker.stop() != 0:
                self.violations.append(f"{worker.name} ended with {worker.popen.returncode}; see {worker.log}")
        account = check_account(self.fleet.workers, self.fleet.export_events(self.capture_id), capture,
                                killed=self.killed)
        account.violations[:0] = self.violations
        return account
