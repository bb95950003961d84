#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimates the processors, memory, disk and network that a fleet needs, by the formulas of docs/operator/sizing.md.

Contacts nothing. docs/operator/sizing.md says how the figures were measured, and what they leave out.
"""

import argparse
import json
import math
import sys

# Measured, see docs/operator/sizing.md. Times are seconds of one processor.
AGENT_FIXED = 0.008  # a second: clocks, looking through /proc, writes
AGENT_PER_EVENT = 0.95e-6
AGENT_PER_CHUNK = 300e-6
AGGREGATOR_FIXED = 0.006
AGGREGATOR_PER_AGENT = 0.001
AGGREGATOR_PER_EVENT = 0.12e-6
AGGREGATOR_PER_CHUNK = 250e-6
TAP_PER_EVENT = 0.43e-6  # the runtime's own fetch included
BYTES_PER_EVENT = 4.7  # of the generator's events
BYTES_PER_CHUNK = 1200.0  # what a chunk has beside its events
CHUNKS_PER_CORE = 1.2  # a second, however few events there are
CLOCK_BYTES_PER_SECOND = 900.0  # of an agent, each way
CLOCK_STORE_BYTES_PER_HOUR = 0.7e6  # of an agent
AGENT_MIB = 60.0
AGENT_QUEUE_MIB = 64.0  # kAgentQueueBytesMax
AGGREGATOR_MIB = 60.0
AGGREGATOR_BUFFERS_MIB = 128.0 + 192.0 + 256.0  # in flight, RocksDB's write buffers, gRPC
EXPORT_MIB = 105.0  # the hungriest format; eight at once
# Limits of lib/trace/limits.h.
CHUNK_EVENTS = 4096
SPOOL_CHUNKS_MAX = 500_000
SPOOL_SHARE = 0.5  # that one capture may have, unless --spool-capture-bytes says otherwise
AGENTS_MAX = 16_384
STORE_FIXED_BYTES = 600 * 2**20
SPARE = 1.5  # for bursts, compaction, exports


def positive(text):
    value = float(text)
    if not value > 0 or math.isinf(value):
        raise argparse.ArgumentTypeError(f"'{text}' is no number above 0")
    return value


def size_node(cores, rate, factor, spool_bytes, workers):
    """What one instance needs while it records."""
    events = cores * rate
    chunks = cores * max(CHUNKS_PER_CORE, rate / CHUNK_EVENTS)
    stored = events * BYTES_PER_EVENT * factor + chunks * BYTES_PER_CHUNK
    share = spool_bytes * SPOOL_SHARE
    return {
        "events_per_second": events,
        "chunks_per_second": chunks,
        "bytes_per_event": stored / events,
        "bytes_per_second": stored,
        "agent_processors": AGENT_FIXED + events * AGENT_PER_EVENT + chunks * AGENT_PER_CHUNK,
        "tap_processors": events * TAP_PER_EVENT,
        "agent_memory_mib": AGENT_MIB + AGENT_QUEUE_MIB,
        "tap_memory_mib": 32.0 * workers,
        "spool_hours": min(share / stored, SPOOL_CHUNKS_MAX / chunks) / 3600,
        "spool_bound_by": "bytes" if share / stored < SPOOL_CHUNKS_MAX / chunks else "chunks",
        "network_bytes_per_second": stored + CLOCK_BYTES_PER_SECOND,
    }


def size_aggregator(nodes, node, hours, continuous):
    """What the aggregator of `nodes` such instances needs, and a store for so many hours of recording."""
    rate = nodes * node["bytes_per_second"]
    kept = hours * 3600
    stretch = kept + kept / 8 + 15 if continuous else kept
    evidence = nodes * CLOCK_STORE_BYTES_PER_HOUR * max(24.0, hours)
    processors = (AGGREGATOR_FIXED + nodes * AGGREGATOR_PER_AGENT
                  + nodes * node["events_per_second"] * AGGREGATOR_PER_EVENT
                  + nodes * node["chunks_per_second"] * AGGREGATOR_PER_CHUNK)
    return {
        "events_per_second": nodes * node["events_per_second"],
        "processors": processors,
        "processors_advised": max(2, math.ceil(processors * SPARE)),
        "memory_mib": AGGREGATOR_MIB + AGGREGATOR_BUFFERS_MIB + 8 * EXPORT_MIB,
        "network_bytes_per_second": rate + nodes * CLOCK_BYTES_PER_SECOND,
        "disk_write_bytes_per_second": rate * (3.3 if continuous else 2.0),
        "store_bytes": rate * stretch * 1.1 + STORE_FIXED_BYTES + evidence,
        "disk_advised_bytes": rate * (3 * kept if continuous else stretch * 1.5) * 1.1 + STORE_FIXED_BYTES + evidence,
    }


def size(options):
    node = size_node(options.cores, options.events, options.factor, options.spool_gib * 2**30, options.workers)
    aggregator = size_aggregator(options.nodes, node, options.hours, options.continuous)
    warnings = []
    if options.nodes > AGENTS_MAX:
        warnings.append(f"an aggregator takes {AGENTS_MAX} agents: use one for each part of the fleet")
    if aggregator["processors"] > 16:
        warnings.append("an aggregator of more than 16 processors has not been tried: record fewer event types or "
                        "fewer workers, or use one for each part of the fleet")
    return {"asked": vars(options), "node": node, "aggregator": aggregator, "warnings": warnings}


def words_of_bytes(number):
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {unit}"
        number /= 1000
    return f"{number:.3g} TB" if number < 1000 else f"{number / 1000:.3g} PB"


def table(sized):
    node, service = sized["node"], sized["aggregator"]
    rows = [
        ("each instance: events", f"{node['events_per_second']:,.0f}/s, {node['bytes_per_event']:.1f} bytes each"),
        ("agent, processors", f"{node['agent_processors']:.3f}"),
        ("agent, memory at most", f"{node['agent_memory_mib']:.0f} MiB"),
        ("taps, processors", f"{node['tap_processors']:.3f}, in the workers"),
        ("taps, memory", f"{node['tap_memory_mib']:.0f} MiB, in the workers"),
        ("spool lasts", f"{node['spool_hours']:.1f} h without the aggregator, for one capture, by its "
                        f"{node['spool_bound_by']}"),
        ("network, spool writes", f"{words_of_bytes(node['network_bytes_per_second'])}/s"),
        ("aggregator: events", f"{service['events_per_second']:,.0f}/s"),
        ("processors", f"{service['processors']:.2f} busy, have {service['processors_advised']}"),
        ("memory at most", f"{service['memory_mib']:,.0f} MiB"),
        ("network", f"{words_of_bytes(service['network_bytes_per_second'])}/s"),
        ("disk writes", f"{words_of_bytes(service['disk_write_bytes_per_second'])}/s"),
        ("store", f"{words_of_bytes(service['store_bytes'])}, have {words_of_bytes(service['disk_advised_bytes'])}"),
    ]
    lines = [f"{name:24}{what}" for name, what in rows]
    return "\n".join(lines + [f"warning: {warning}" for warning in sized["warnings"]])


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example:\n  tools/size_fleet.py --nodes 64 --cores 32 --events 2000 --hours 24 --output json")
    add = parser.add_argument
    add("--nodes", type=int, required=True, help="instances that record at once")
    add("--cores", type=int, default=32, help="logical NeuronCores of each (default: 32)")
    add("--events", type=positive, default=2000, help="events a second of each core (default: 2000)")
    add("--workers", type=int, default=1, help="worker processes of each instance (default: 1)")
    add("--hours", type=positive, default=24, help="how many hours of recording the store holds (default: 24)")
    add("--continuous", action="store_true", help="they are kept by continuous captures, which delete what is older")
    add("--spool-gib", type=positive, default=4, help="--spool-bytes of the agents, in GiB (default: 4)")
    add("--factor", type=positive, default=2, help="how much larger real events are than the generator's (default: 2)")
    add("--output", choices=("text", "json"), default="text")
    options = parser.parse_args(arguments)
    if min(options.nodes, options.cores, options.workers) < 1:
        parser.error("--nodes, --cores and --workers are at least 1")
    output, options.output = options.output, None
    del options.output
    sized = size(options)
    print(json.dumps(sized, indent=1) if output == "json" else table(sized))
    return 0


if __name__ == "__main__":
    sys.exit(main())
