# SPDX-License-Identifier: Apache-2.0
"""The binary answers of mock_server.py: spans merged to pixels, and heat maps."""

import array
import json
import math
import struct

from mock_capture import CATEGORIES, LAYERS, MS, SLOT, STEP, category_of

INSTANT, MERGED, CLIPPED_LEFT, CLIPPED_RIGHT = 4, 8, 16, 32


def frame(header, columns):
    text = json.dumps(header).encode()
    return b"NTV1" + struct.pack("<I", len(text)) + text + bytes(-(8 + len(text)) % 8) + columns


def padded(column):
    raw = column if isinstance(column, bytes) else column.tobytes()
    return raw + bytes(-len(raw) % 8)


def merge(events, low, high, px):
    """Items of a row: [start, end, count, name, depth, flags].

    Those narrower than a pixel share one per pixel and level.
    """
    per = (high - low) / px
    items, open_bins, merged, overlapping = [], {}, False, 0
    for start, duration, name, depth, _, _ in events:
        end = start + duration
        if start >= high or end <= low:
            continue
        overlapping += 1
        flags = (CLIPPED_LEFT if start < low else 0) | (CLIPPED_RIGHT if end > high else 0)
        start, end = max(start, low), min(end, high)
        if end - start >= per:
            items.append([start, end, 1, name, depth, flags])
            continue
        pixel = int((start - low) / per)
        held = open_bins.get(depth)
        if held and held[0] == pixel:
            item = held[1]
            if duration > held[2]:
                item[3], held[2] = name, duration
            item[1], item[2], item[5] = max(item[1], end), item[2] + 1, flags | MERGED
            merged = True
            continue
        item = [start, end, 1, name, depth, flags]
        items.append(item)
        open_bins[depth] = [pixel, item, duration]
    items.sort(key=lambda item: (item[0], item[4]))
    return items, merged, overlapping


def span_columns(items, low, unit, names):
    starts = array.array("I", [(item[0] - low) // unit for item in items])
    durations = array.array("I", [(item[1] - item[0]) // unit for item in items])
    counts = array.array("I", [item[2] for item in items])
    named = array.array("H", [names.setdefault(item[3], len(names)) for item in items])
    depths, flags = bytes(item[4] for item in items), bytes(item[5] for item in items)
    return b"".join(padded(column) for column in (starts, durations, counts, named, depths, flags))


def counter_columns(samples, low, high, px, unit):
    per, kept = (high - low) / px, {}
    before = [value for at, value in samples if at < low]
    if before:  # a counter holds its value until the next
        kept[-1] = (low, before[-1])
    for at, value in samples:
        if low <= at < high:
            pixel = int((at - low) / per)
            if pixel not in kept or kept[pixel][1] < value:
                kept[pixel] = (kept.get(pixel, (at, 0))[0], value)
    pairs = [kept[pixel] for pixel in sorted(kept)]
    return len(pairs), padded(array.array("I", [(at - low) // unit for at, _ in pairs])) + padded(
        array.array("f", [v for _, v in pairs])
    )


def spans(capture, streams, low, high, px):
    unit = 1
    while (high - low) // unit > 0xFFFFFFFF:
        unit *= 2
    names, rows, columns = {}, [], b""
    for stream in streams:
        for row in capture.rows(stream):
            entry = {
                "stream": stream["number"],
                "row": row["row"],
                "name": row["name"],
                "source": row["source"],
                "order": row["order"],
                "depth": row.get("depth", 1),
                "offset": len(columns),
            }
            if row["source"] == "counter":
                count, part = counter_columns(row["samples"], low, high, px, unit)
                entry.update(mode="exact", events=str(count), items=count, unit=row["unit"], max=row["max"])
            else:
                items, merged, overlapping = merge(row["events"], low, high, px)
                part = span_columns(items, low, unit, names)
                entry.update(mode="bins" if merged else "exact", events=str(overlapping), items=len(items))
            rows.append(entry)
            columns += part
    header = {
        "from": str(low),
        "to": str(high),
        "version": capture.version,
        "unit_ns": unit,
        "names": list(names),
        "categories": CATEGORIES,
        "name_category": [category_of(name) for name in names],
        "rows": rows,
        "cut": None,
        "scanned_chunks": len(rows),
        "unreadable_chunks": 0,
    }
    return frame(header, columns)


METRICS = {"busy": "share", "wait": "share", "events": "events", "late": "ns", "step": "ns"}


def heat_value(capture, metric, stream, step):
    """The same formulas as the events are made by, without making them."""
    gid = stream["gid"]
    jitter = ((gid * 2654435761 + step * 40503) % 1000) / 1000
    late = capture.late(gid, step)
    if metric == "busy":
        return min(1.0, (14 * MS + jitter * 0.9 * MS + late) / SLOT)
    if metric == "wait":
        return (4.5 * MS - jitter * 0.9 * MS - late) / SLOT
    if metric == "events":
        return float(capture.event_count(stream) // max(1, capture.steps()))
    if metric == "late":
        return (jitter - 0.5) * 1600 + late
    return (jitter - 0.5) * 1900 + late * LAYERS


def cell_bound(metric, stream):
    """How far a difference may be from the truth: not a number if that is not known."""
    if metric == "step":
        return 0.0
    return 2.0 * int(stream["bound_ns"]) if stream["bound_known"] else math.nan


def badness(value, bound):
    """A key by which the worst cell is the largest: certainly late, then perhaps, then certainly early."""
    if math.isnan(value):
        return (-1, 0.0)
    return (2 if value > bound else 0 if value < -bound else 1, value)


def heat_cells(capture, metric, streams, steps):
    """The values of each stream in these steps."""
    cells = []
    for stream in streams:
        values = []
        for step in steps:
            moment = capture.begin + step * STEP + STEP // 2
            missing = any(gap["begin_ns"] <= moment < gap["end_ns"] for gap in stream["gaps"])
            values.append(math.nan if missing else heat_value(capture, metric, stream, step))
        cells.append(values)
    return cells


def heat(capture, metric, low, high, columns, lines, by, sort):
    streams = [stream for stream in capture.streams if stream["gid"] is not None]
    has_bounds, is_by_step = METRICS[metric] == "ns", by == "step"
    columns = min(columns, capture.steps()) if is_by_step else columns
    # Columns of one step are equal, so that each is computed once.
    step_of = [c if is_by_step else (low + (high - low) * c // columns - capture.begin) // STEP for c in range(columns)]
    steps = sorted(set(step_of))
    place_of = [steps.index(step) for step in step_of]
    cells = heat_cells(capture, metric, streams, steps)
    bounds = [cell_bound(metric, stream) if has_bounds else 0.0 for stream in streams]
    order = list(range(len(streams)))
    if sort == "worst":
        order.sort(key=lambda row: max(badness(value, bounds[row]) for value in cells[row]), reverse=True)
    lines = min(lines, len(order))
    begins = [len(order) * line // lines for line in range(lines)] + [len(order)]
    values, cell_bounds, chosen = array.array("f"), array.array("f"), array.array("I")
    for line in range(lines):
        rows = range(begins[line], begins[line + 1])
        worst = [
            max(rows, key=lambda row, place=place: badness(cells[order[row]][place], bounds[order[row]]))
            for place in range(len(steps))
        ]
        for place in place_of:
            values.append(cells[order[worst[place]]][place])
            cell_bounds.append(bounds[order[worst[place]]])
            chosen.append(worst[place] - begins[line])
    header = {
        "metric": metric,
        "unit": METRICS[metric],
        "columns": columns,
        "from": str(low),
        "to": str(high),
        "complete": True,
        "has_bounds": has_bounds,
        "steps": [str(step) for step in range(columns)] if is_by_step else None,
        "reason": None,
        "warnings": [],
        "rows": [
            {"stream": streams[row]["number"], **{key: streams[row][key] for key in ("gid", "bound_known", "bound_ns")}}
            for row in order
        ],
        "lines": begins[:-1],
    }
    if is_by_step:
        header.update(
            steps_per_column=1,
            step_begin_ns=[str(capture.begin + step * STEP) for step in range(columns)],
            step_end_ns=[str(capture.begin + (step + 1) * STEP) for step in range(columns)],
            step_source="barrier",
        )
    columns_of_bytes = values.tobytes()
    if has_bounds:
        columns_of_bytes += cell_bounds.tobytes()
    if lines < len(order):
        columns_of_bytes += chosen.tobytes()
    return frame(header, columns_of_bytes)
