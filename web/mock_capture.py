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
            "markers": [{"kind": "started", "ns": begin, "detail": ""}],
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
                "unit": "B" if name.endswith("bytes") else "%",
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
                "source": "runtime",
                "order": 0,
                "depth": depth,
                "events": runtime,
            },
            {"row": ROW_HARDWARE, "name": "engines", "source": "hardware", "order": 1, "depth": 1, "events": hardware},
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
        _, _, name, _, seed, _ = event
        linked = self.linked_json(stream, row, event)
        return {
            **linked,
            "type": name.split(" ")[0],
            "phase": "span",
            "duration_ns": str(event[1]),
            "flags": [],
            "sequence_id": str(seed),
            "bound_known": stream["bound_known"],
            "bound_ns": stream["bound_ns"],
            "args": {
                "model": "llama-70b.neff",
                "exec_id": str(seed),
                "op": "all_reduce",
                "bytes": "67108864",
                "hostile": "<script>alert(1)</script>",
            },
        }

    @staticmethod
    def linked_json(stream, row, event):
        """An event as links name it."""
        start, duration, name, depth = event[:4]
        return {
            "id": f"{stream['number']}-{start}-{zlib.crc32(name.encode())}",
            "stream": stream["number"],
            "row": row["row"],
            "row_name": row["name"],
            "name": name,
            "start_ns": str(start),
            "end_ns": str(start + duration),
            "depth": depth,
        }

    def find_event(self, event_id):
        """(stream, row, event) with this id, or None."""
        number, start, _ = event_id.split("-")
        for stream in self.streams:
            if stream["number"] != int(number):
                continue
            for row in self.rows(stream):
                for event in row["events"]:
                    if event[0] == int(start) and self.linked_json(stream, row, event)["id"] == event_id:
                        return stream, row, event
        return None

    def links_of(self, place):
        """The links of an event: an execution with its collectives, and these with those of other ranks."""
        stream, row, event = place
        start, duration, name = event[:3]
        links = []

        def add(kind, direction, other, of_row, found):
            links.append(
                {
                    "kind": kind,
                    "direction": direction,
                    "direct": True,
                    **self.linked_json(other, of_row, found),
                }
            )

        is_collective = name.startswith(("cc_running", "enc_barrier"))
        if is_collective or name == "nc_exec_running":
            for other in row["events"]:
                if is_collective and other[2] == "nc_exec_running" and other[0] <= start < other[0] + other[1]:
                    add("execution_part", "upstream", stream, row, other)
                if not is_collective and other[2].startswith("cc_running") and start <= other[0] < start + duration:
                    add("execution_part", "downstream", stream, row, other)
        if is_collective:
            partners = []
            for other in self.streams[:30]:
                if other["gid"] is None or other is stream:
                    continue
                of_row = self.rows(other)[0]
                for found in of_row["events"]:
                    if found[2] == name and abs(found[0] - start) < SLOT // 2:
                        partners.append((found, other, of_row))
                        break
            for found, other, of_row in sorted(partners, key=lambda partner: -partner[0][0]):
                add("collective", "upstream" if found[0] > start else "downstream", other, of_row, found)
        return links

    def links(self, event_id, direction, depth, breadth):
        """The answer of links, or None if there is no such event."""
        place = self.find_event(event_id)
        if place is None:
            return None
        own, links, chain, cut = self.linked_json(*place), self.links_of(place), [], None
        seen, waiting = {event_id}, [(event_id, 1, links)] if direction else []
        while waiting:
            before, distance, found = waiting.pop(0)
            wanted = [link for link in found if link["direction"] == direction and link["id"] not in seen]
            if direction == "upstream":
                last = next((link for link in wanted if link["kind"] == "collective"), None)
                wanted = [link for link in wanted if link["kind"] != "collective" or link is last]
            if len(wanted) > breadth:
                cut = f"of one event at most {breadth} links are followed"
            for link in wanted[:breadth]:
                seen.add(link["id"])
                chain.append({"distance": distance, "from": before, **link})
                if distance < depth:
                    waiting.append((link["id"], distance + 1, self.links_of(self.find_event(link["id"]))))
        is_alone = own["name"].startswith("cc_running") and not any(link["kind"] == "collective" for link in links)
        return {
            "event": own,
            "links": links[:64],
            "more": str(max(0, len(links) - 64)),
            "unlinked": ["no other rank has an event with its exec_id and op_id"] if is_alone else [],
            "chain": chain[:64],
            "from_ns": str(int(own["start_ns"]) - 10**9),
            "to_ns": str(int(own["end_ns"]) + 10**9),
            "cut": cut,
            "scanned_chunks": 3,
            "complete": True,
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
