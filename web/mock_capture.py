# SPDX-License-Identifier: Apache-2.0
"""A synthetic capture for mock_server.py: ranks that run the same steps, one of them late."""

import collections
import random
import time
import zlib

MS = 10**6
STEP = 250 * MS
LAYERS = 12
SLOT = 20 * MS  # of a layer: compute, then its collective, which ends on all ranks together
TRANSFER = 1 * MS  # of a collective after the last rank has entered
LATE_GID = 13
ROW_RUNTIME, ROW_HARDWARE, ROW_COUNTER = 17, 18, 19
HELD_STREAMS_MAX = 200
CATEGORIES = ["neuron_rt", "neuron_hw"]


def category_of(name):
    return 1 if name.startswith(("matmul", "softmax", "gelu")) else 0


class MockCapture:
    def __init__(self, capture_id, name, ranks, begin_ns, seconds, clean=False, hostile=False):
        self.id = capture_id
        self.name = name
        self.begin = begin_ns
        self.hostile = hostile
        self.is_live = seconds == 0
        self.fixed_end = begin_ns + seconds * 1000 * MS
        self.held = collections.OrderedDict()
        count = max(1, min(3, ranks // 4)) if ranks <= 24 else (ranks + 31) // 32
        self.instances = [
            {
                "id": f"i-0a{i:04x}5e2d",
                "label": f"i-0a{i:04x}5e2d",
                "bound_ns": str(900 + 350 * (i % 5)),
                "bound_known": i % 17 != 16,
            }
            for i in range(count)
        ]
        self.streams = []
        per = (ranks + count - 1) // count
        for instance in range(count):
            for gid in range(instance * per, min(ranks, (instance + 1) * per)):
                self.add_stream(instance, "core", f"gid {gid} · nc {gid % per}", gid, gid % per, clean)
            self.add_stream(instance, "host", "host", None, None, True)

    def add_stream(self, instance, kind, label, gid, core, clean):
        at = self.begin
        gaps = []
        if gid == 5 and not clean:
            gaps.append(gap(at + 6000 * MS, at + 6400 * MS, 1234, "loss", "overwritten in the runtime's ring"))
        if gid == 9 and not clean:
            gaps.append(
                gap(at + 15000 * MS, at + 15060 * MS, 0, "damage", "chunk 41 cannot be decoded: its checksum differs")
            )
        if gid is not None and 16 <= gid < 24 and not clean:
            gaps.append(
                gap(at + 12000 * MS, at + 13000 * MS, 0, "suspension", "capture 01JDQ5S7Z3OTHER had the worker")
            )
        self.streams.append(
            {
                "number": len(self.streams) + 4,
                "instance": instance,
                "kind": kind,
                "process": f"pid {812 + instance}",
                "job": "train",
                "label": label,
                "gid": gid,
                "core": core,
                "events": "0",
                "lost": str(sum(g["events"] for g in gaps)),
                "chunks": "32",
                "bound_ns": self.instances[instance]["bound_ns"],
                "bound_known": self.instances[instance]["bound_known"],
                "own_time": False,
                "gaps": gaps,
            }
        )

    @property
    def end(self):
        return time.time_ns() - 500 * MS if self.is_live else self.fixed_end

    @property
    def state(self):
        return "RUNNING" if self.is_live else "ENDED"

    @property
    def version(self):
        return str((self.end - self.begin) // (2000 * MS)) if self.is_live else "7"

    def stop(self):
        self.fixed_end = self.end
        self.is_live = False

    def layout(self):
        begin, end = str(self.begin), str(self.end)
        streams = []
        for stream in self.streams:
            gaps = [
                {**g, "begin_ns": str(g["begin_ns"]), "end_ns": str(g["end_ns"]), "events": str(g["events"])}
                for g in stream["gaps"]
            ]
            streams.append(
                {**stream, "gaps": gaps, "events": str(self.event_count(stream)), "begin_ns": begin, "end_ns": end}
            )
        warnings = (
            []
            if not any(s["gaps"] for s in self.streams)
            else ["1,234 events of gid 5 are lost: the runtime's ring was full", "gid 16 to 23 were suspended for 1 s"]
        )
        return {
            "capture": {"id": self.id, "name": self.name, "state": self.state},
            "version": self.version,
            "live": self.is_live,
            "begin_ns": begin,
            "end_ns": end,
            "warnings": warnings,
            "instances": self.instances,
            "streams": streams,
            "markers": [],
        }

    def steps(self):
        return (self.end - self.begin) // STEP

    def event_count(self, stream):
        return self.steps() * (2 if stream["gid"] is None else 1 + LAYERS * 7)

    def late(self, gid, step):
        """How much longer than others this rank computes in a layer."""
        return 2600 * 1000 + (step % 7) * 90 * 1000 if gid == LATE_GID else 0

    def rows(self, stream):
        """The rows of a stream with their events: [start, duration, name, depth, args seed, duration of children]."""
        key = (stream["number"], self.steps())
        if key in self.held:
            self.held.move_to_end(key)
            return self.held[key]
        rows = self.host_rows() if stream["gid"] is None else self.core_rows(stream)
        for row in rows:
            row["events"] = [
                event
                for event in row["events"]
                if not any(event[0] < g["end_ns"] and event[0] + event[1] > g["begin_ns"] for g in stream["gaps"])
            ]
        self.held[key] = rows
        while len(self.held) > HELD_STREAMS_MAX:
            self.held.popitem(last=False)
        return rows

    def host_rows(self):
        chance = random.Random(zlib.crc32(self.id.encode()))

        def samples(base, spread):
            return [(self.begin + i * STEP, base + spread * chance.random()) for i in range(self.steps())]

        counters = [
            ("host_cpu average util_percent", 100.0, samples(35, 30)),
            ("host_cpu 0 util_percent", 100.0, samples(20, 60)),
            ("host_cpu 1 util_percent", 100.0, samples(30, 60)),
            ("host_memory used_percent", 100.0, samples(33, 4)),
            ("host_memory used_bytes", 197e9, samples(170e9, 20e9)),
            ("host_memory total_bytes", 512e9, samples(512e9, 0)),
        ]
        return [
            {
                "row": number + 1,
                "name": name,
                "source": "counter",
                "order": number,
                "unit": "",
                "max": highest,
                "events": [],
                "samples": taken,
            }
            for number, (name, highest, taken) in enumerate(counters)
        ]

    def core_rows(self, stream):
        gid = stream["gid"]
        chance = random.Random(gid * 7919 + 1)
        runtime, hardware, samples = [], [], []
        for step in range(self.steps()):
            at = self.begin + step * STEP
            start = at + chance.randrange(200, 900) * 1000
            children = 0
            inner = []
            for layer in range(LAYERS):
                slot = at + 2 * MS + layer * SLOT
                compute = 14 * MS + chance.randrange(0, 900) * 1000 + self.late(gid, step)
                enter = slot + compute
                leave = slot + 14 * MS + 2600 * 1000 + 900 * 1000 + TRANSFER
                name = "cc_running" if layer < LAYERS - 1 else "enc_barrier"
                inner.append([slot, compute, f"layer {layer:02d}", 1, layer, compute // 5])
                inner.append([slot + compute // 3, compute // 5, "dma_in", 2, layer, 0])
                inner.append(
                    [
                        enter,
                        max(200000, leave - enter),
                        f"{name} all_reduce" if layer < LAYERS - 1 else name,
                        1,
                        layer,
                        0,
                    ]
                )
                children += compute + leave - enter
                self.add_kernels(hardware, slot, compute, layer, chance)
                samples.append((slot, 18 + 12 * chance.random() if layer % 3 else 4 + 4 * chance.random()))
            runtime.append([start, at + STEP - 6 * MS - start, "nc_exec_running", 0, step, children])
            runtime.extend(sorted(inner))
        if self.hostile:
            runtime.append([self.begin + 100 * MS, 40 * MS, "<img src=x onerror=alert(1)>", 3, 0, 0])
            runtime.append([self.begin + 300 * MS, 40 * MS, "\u202eevil\u202c " + "long " * 2000, 3, 0, 0])
        runtime.sort()
        hardware.sort()
        depth = 4 if self.hostile else 3
        return [
            {
                "row": ROW_RUNTIME,
                "name": f"thread {812 + gid % 8}",
                "source": "neuron_rt",
                "order": 0,
                "depth": depth,
                "events": runtime,
            },
            {"row": ROW_HARDWARE, "name": "engines", "source": "neuron_hw", "order": 1, "depth": 1, "events": hardware},
            {
                "row": ROW_COUNTER,
                "name": "HBM bandwidth",
                "source": "counter",
                "order": 2,
                "unit": "GB/s",
                "max": 31.5,
                "events": [],
                "samples": samples,
            },
        ]

    @staticmethod
    def add_kernels(hardware, slot, compute, layer, chance):
        at = slot + 100000
        for kernel in ("matmul", "softmax", "matmul", "gelu"):
            length = int(compute * (0.16 + 0.06 * chance.random()))
            hardware.append([at, length, f"{kernel} {layer % 4}", 0, layer, 0])
            at += length + 120000

    def event_json(self, stream, row, event):
        start, duration, name, depth, seed, _ = event
        links = []
        if name.startswith(("cc_running", "enc_barrier")):
            for other in self.streams[:30]:
                if other["gid"] is not None and other is not stream:
                    partner = next(
                        (e for e in self.rows(other)[0]["events"] if e[2] == name and abs(e[0] - start) < SLOT // 2),
                        None,
                    )
                    if partner:
                        links.append(
                            {
                                "kind": "collective",
                                "stream": other["number"],
                                "row": ROW_RUNTIME,
                                "start_ns": str(partner[0]),
                                "name": f"{name} on {other['label']}",
                            }
                        )
        return {
            "stream": stream["number"],
            "row": row["row"],
            "name": name,
            "type": name.split(" ")[0],
            "phase": "span",
            "start_ns": str(start),
            "end_ns": str(start + duration),
            "duration_ns": str(duration),
            "depth": depth,
            "flags": [],
            "id": str(start % 1000003),
            "sequence_id": str(seed),
            "bound_ns": stream["bound_ns"],
            "args": {
                "model": "llama-70b.neff",
                "exec_id": str(seed),
                "op": "all_reduce",
                "bytes": "67108864",
                "hostile": "<script>alert(1)</script>",
            },
            "links": links,
        }

    def agents(self):
        return {
            "agents": [
                {
                    "hello": {
                        "agentId": f"agent-{i['id']}",
                        "agentVersion": "0.1.0",
                        "instanceId": i["id"],
                        "hostName": f"trn-{n}",
                        "instanceType": "trn2.48xlarge",
                    },
                    "connected": n != 2,
                    "workers": 8,
                    "lastSeenRealtimeNs": str(time.time_ns()),
                }
                for n, i in enumerate(self.instances[:500])
            ]
        }

    def workers(self):
        return {
            "workers": [
                {
                    "identity": {"instanceId": self.instances[s["instance"]]["id"], "pid": 812 + s["gid"]},
                    "job": "train",
                    "state": "WORKER_STATE_STREAMING" if s["gid"] % 11 else "WORKER_STATE_NO_TAP",
                    "runtimeVersion": "2.29.1",
                    "command": "python train.py --model llama-70b --tp 8",
                    "cores": [{"ncIdx": s["core"], "rankEvidence": [{"workerGid": str(s["gid"])}]}],
                }
                for s in self.streams[:800]
                if s["gid"] is not None
            ]
        }

    def clocks(self):
        return {
            "clocks": [
                {
                    "instanceId": i["id"],
                    "aligned": i["bound_known"],
                    "boundNs": i["bound_ns"],
                    "likelyBoundNs": "180",
                    "offsetNs": str(-41000 + 900 * n),
                    "driftPpb": str(12 - n),
                    "sources": ["probe", "ptp"],
                    "exchanges": "8123",
                }
                for n, i in enumerate(self.instances[:500])
            ]
        }


def gap(begin, end, events, kind, reason):
    return {"begin_ns": begin, "end_ns": end, "events": events, "kind": kind, "reason": reason}
