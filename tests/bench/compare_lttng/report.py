# SPDX-License-Identifier: Apache-2.0
"""The results as the section of docs/developer/benchmarks.md: tables, and the words that belong to them."""

METHOD = """\
`tests/bench/compare_lttng/compare_lttng` runs Debian's LTTng (lttng-tools, liblttng-ust) and neurontrace on the same
seeded events (`event_mix.h`, default filter, attributes included), from as many processes, and counts what arrived at
the reader: `babeltrace2` there, the `events` export here. {setup}

LTTng's producers call a tracepoint for each event, one for each type and phase with exactly its attributes, into 64 MiB
of buffers (2 x 8 x 4 MiB). Ours emit into the simulated Neuron Runtime, from where the tap fetches JSON: 64 MiB of tap
buffers and 28 MiB of the runtime's rings. Recording and writing JSON is the runtime's work, not a collector's, but takes
its share of the same processors; "documents written in advance" leaves it out and begins with the tap's fetch.
LTTng writes to the page cache and never syncs: the row of ours to compare with it is "page cache"
(`--durability page-cache`, `--spool-durability page-cache`). "Acknowledged and synced" is our default, for which LTTng has no counterpart."""

RATE = """\
**The highest rate without a loss.** Every event is at the reader, the producers kept their rate, and not more than a
tenth of the time's events was still in buffers at the end. Steps of 7 %; "ended by" is what the next step failed by."""

COST = """\
**Cost of an event** at {rate:,.0f} events/s, which all hold. Processor time is that of the daemons from /proc;
the tap's thread, which is in the worker, stands apart, with the (wall-clock) part of it that is the runtime's own
fetch. "In the application" is what emitting costs the thread that does it. Bytes are those of all files: LTTng's trace;
our store, closed and opened again (while it is open, there is also a log of up to 256 MiB)."""

KILL = """\
**Killed with -9** at a random moment of a {seconds:.0f} s run at {rate:,.0f} events/s, and started again as an init
system would (not consumerd, which sessiond starts once); then the capture is ended as usual and read, without any repair. Lost: produced but not readable. "Counted"
is in how many rounds the reader was told the exact number lost (0 for 0 counts)."""

ADDITION = """\
| | LTTng | neurontrace |
| --- | --- | --- |
| source | tracepoints compiled into the application | the runtime's own trace, by its public API; no application is changed |
| an event is | bytes that pass through | parsed from JSON with any keys in any order, checked field by field |
| whose it is | the process | instance, process, core and global rank, from evidence that is kept |
| stored as | packets as they came | checked, sorted columns, compressed, indexed by capture, stream and time |
| read by | a scan of all files | any window, instance, core or type, merged over all machines |
| arrives | at most once, unacknowledged | exactly once: acknowledged when durable, resumed after a restart of any part |
| a lost event | is counted by the tracer, inside the trace | is counted by place and reason, in the capture |"""


TITLE = "## Beside LTTng"


def replace_section(document, section):
    """The document with the section in the place of the one with its title, or at the end."""
    head, title, rest = document.partition(TITLE + "\n")
    if not title:
        return f"{document.rstrip()}\n\n{section}\n"
    _, next_title, tail = rest.partition("\n## ")
    return f"{head}{section}\n" + (f"\n## {tail}" if next_title else "")


def _spread(spread, form="{:.2f}", scale=1.0):
    low, mid, high = (form.format(spread[key] * scale) for key in ("min", "median", "max"))
    return mid if low == high else f"{mid} ({low} to {high})"


def _rates(results):
    lines = ["| collector | M events/s without loss | ended by |", "| --- | --- | --- |"]
    for found in results:
        limits = found["limits"]
        why = ", ".join(f"{word} ({limits.count(word)})" for word in sorted(set(limits)))
        lines.append(f"| {found['name']} | {_spread(found['rate'], scale=1e-6)} | {why} |")
    return lines


def _costs(results):
    lines = ["| collector | CPU s a million events: daemons | of it | tap's thread, of it fetch | in the application | "
             "B on disk an event |", "| --- | --- | --- | --- | --- | --- |"]
    for found in results:
        cpu = dict(found["cpu_seconds_per_million"])
        total, tap, fetch = cpu.pop("total"), cpu.pop("tap's thread", None), cpu.pop("the runtime's fetch", None)
        parts = ", ".join(f"{part} {spread['median']:.3f}" for part, spread in cpu.items())
        in_tap = "-" if tap is None else f"{tap['median']:.3f}, {fetch['median']:.3f}"
        lost = f"; {found['lost']:,} events were lost" if found["lost"] else ""
        producer = found["producer_cpu_seconds_per_million"]
        lines.append(f"| {found['name']} | {_spread(total, '{:.3f}')} | {parts}{lost} | {in_tap} | "
                     f"{_spread(producer, '{:.3f}') if producer['max'] > 0 else '-'} | "
                     f"{_spread(found['bytes_per_event'], '{:.1f}')} |")
    return lines


def _kills(results):
    lines = ["| killed | readable afterwards | events lost | counted | the reader says |",
             "| --- | --- | --- | --- | --- |"]
    for found in results:
        lines.append(f"| {found['daemon']} ({found['name']}) | {_spread(found['readable_share'], '{:.1f} %', 100)} | "
                     f"{_spread(found['lost'], '{:,.0f}')} | {found['rounds_counted']} of {len(found['rounds'])} | "
                     f"{'; '.join(found['problems']) or 'no problems'} |")
    return lines


def _ratio(results, section, ours, read):
    """LTTng, streamed, over ours by one figure; None where either is missing."""
    lttng, other = results[section].get("lttng-net"), results[section].get(ours)
    return read(lttng) / read(other) if lttng and other and read(other) else None


def _verdict(results):
    """Who wins what, in the figures of this run: LTTng streamed against ours in the page cache."""
    rate = _ratio(results, "rate", "page-cache", lambda found: found["rate"]["median"])
    replayed = _ratio(results, "rate", "replay", lambda found: found["rate"]["median"])
    cpu = _ratio(results, "cost", "page-cache", lambda found: found["cpu_seconds_per_million"]["total"]["median"])
    disk = _ratio(results, "cost", "page-cache", lambda found: found["bytes_per_event"]["median"])
    words = []
    if rate:
        words.append(f"The rate without loss of LTTng, streamed, is {rate:.1f} times that of ours in the page cache"
                     + (f", {replayed:.1f} times that with documents written in advance." if replayed else "."))
    if cpu:
        words.append(f"Its daemons use {cpu:.2f} times our processor time for an event.")
    if disk:
        words.append(f"Its trace has {disk:.1f} times the bytes of our store.")
    return ["**LTTng streamed against ours in the page cache.** " + " ".join(words), ""] if words else []


def markdown(results):
    """The whole section, with the tables that were measured."""
    setup = (f"{results['processes']} producers with {results['cores']} NeuronCores each on {results['processors']} "
             f"processors, seed {results['seed']}; median (least to greatest) of {results['rounds']} rounds; load "
             f"{results['load_before']:.1f} when it began.")
    lines = [TITLE, METHOD.format(setup=setup), ""]
    settings = results["settings"]
    for section, words, table in (("rate", RATE, _rates), ("cost", COST, _costs), ("kill", KILL, _kills)):
        found = [result for result in results[section].values() if result]
        if found:
            lines += [words.format(**settings.get(section, {})), "", *table(found), ""]
    lines += [*_verdict(results), "**What ours does in addition.**", "", ADDITION, ""]
    lines += [f"Not measured: {error}" for error in results["errors"]]
    return "\n".join(lines).rstrip()
