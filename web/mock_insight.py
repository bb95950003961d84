# SPDX-License-Identifier: Apache-2.0
"""Verdicts on the synthetic captures of mock_server.py: v1.InsightReport as proto3 JSON, as the gateway prints it."""

from mock_capture import LATE_GID, LAYERS, MS, STEP

COMPUTE = 14 * MS + 450 * 1000  # of a layer, on average
RULE = "2026-11-28"


def core(capture, stream):
    return {
        "job": stream["job"],
        "instance_id": capture.instances[stream["instance"]]["id"],
        "pid": stream["process"].split(" ")[1],
        "worker_gid": str(stream["gid"]),
        "nc_idx": stream["core"],
    }


def report(capture, low, high, job):
    """What is known about a window of a capture, by the formulas that its events are made by."""
    ranks = [stream for stream in capture.streams if stream["gid"] is not None and job in ("", stream["job"])]
    steps = max(0, (min(high, capture.end) - max(low, capture.begin)) // STEP)
    window = (max(low, capture.begin), min(high, capture.end))
    refusals = [refusal for refusal in refused(capture, ranks, *window) if refusal]
    judged = len(ranks) - sum(refusal["cores_total"] for refusal in refusals if refusal["reason"] == "coverage")
    slow = next((stream for stream in ranks if stream["gid"] == LATE_GID), None)
    verdicts = []
    if slow and steps >= 4:
        verdicts = [slow_core(capture, slow, len(ranks), steps, *window), *slow_host(capture, ranks, *window),
                    uneven_role(ranks, steps, *window)]
    if capture.is_live and steps >= 4:
        verdicts = [hang(capture, ranks, *window)]
    if capture.hostile and verdicts == [] and ranks:
        verdicts = [{**slow_core(capture, ranks[0], len(ranks), steps, *window),
                     "text": "<img src=x onerror=alert(1)> \u202egnp.exe " + "long" * 200, "role": "<b>role</b>"}]
    late = capture.late(LATE_GID, 0) if slow else 0
    return {
        "verdicts": verdicts,
        "refusals": refusals,
        "cores": len(ranks),
        "cores_judged": judged if steps >= 4 else 0,
        "executions": str(judged * steps),
        "step_ns": str(STEP),
        "exposed_wait_ns": str(late * LAYERS + 2 * MS),
        "explained_wait_ns": str(late * LAYERS),
        "below_cost": not verdicts,
        "begin_ns": str(window[0]),
        "end_ns": str(window[1]),
        "warnings": [],
        "rule_version": RULE,
    }


def slow_core(capture, stream, ranks, steps, low, high):
    cost = capture.late(stream["gid"], 0) * LAYERS or 5 * MS
    ratio = (COMPUTE + cost / LAYERS) / COMPUTE
    return {
        "kind": "VERDICT_KIND_SLOW_CORE",
        "suspects": [core(capture, stream)],
        "suspects_total": 1,
        "phase": "device",
        "role": "llama70b#2",
        "peers": ranks - 1,
        "ratio": ratio,
        "z": 41.3,
        "executions": steps,
        "judged": steps,
        "since_ns": str(low),
        "until_ns": str(high),
        "cost_ns": str(cost),
        "step_ns": str(STEP),
        "waiting": ranks - 1,
        "exec_id": str(5),
        "ruled_out": [
            {"what": "host", "ratio": 0.99},
            {"what": "input", "ratio": 1.01},
            {"what": "link", "ratio": 1.0, "figure": "of its history"},
            {"what": "clock", "figure": f"bound {int(stream['bound_ns']) / 1000:g} us, lateness {cost / MS:g} ms"},
        ],
        "text": f"SLOW rank {stream['gid']} {core(capture, stream)['instance_id']} nc {stream['core']} device work of "
        f"llama70b/pp2: own work {ratio:.2f} times the median of its {ranks - 1} peers, "
        f"in {steps} of {steps} executions",
        "look": f"neurontrace export {capture.id} --worker-gid {stream['gid']},{stream['gid'] + 1} --from 1s --to 3s",
    }


def slow_host(capture, ranks, low, high):
    """An instance's host that is slow for three seconds."""
    begin, end = capture.begin + 6000 * MS, capture.begin + 9000 * MS
    if low > begin or high < end:
        return []
    suspects = [stream for stream in ranks if stream["instance"] == 2]
    return [{
        "kind": "VERDICT_KIND_SLOW_HOST",
        "suspects": [core(capture, stream) for stream in suspects[:64]],
        "suspects_total": len(suspects),
        "phase": "gap",
        "role": "llama70b#0",
        "peers": len(ranks) - len(suspects),
        "ratio": 1.42,
        "z": 9.6,
        "executions": 8,
        "judged": 12,
        "since_ns": str(begin),
        "until_ns": str(end),
        "cost_ns": str(12 * MS),
        "step_ns": str(STEP),
        "waiting": len(ranks) - len(suspects),
        "ruled_out": [{"what": "input", "ratio": 1.02}, {"what": "memory", "figure": "31 % used"}],
        "text": f"SLOW host {capture.instances[2]['id']}: the gap before llama70b/pp0 on {len(suspects)} of "
        f"{len(suspects)} cores: own work 1.42 times the median of their {len(ranks) - len(suspects)} peers, "
        "in 8 of 12 executions",
        "look": f"neurontrace export {capture.id} --instance {capture.instances[2]['id']} --from 6s --to 9s",
    }]


def uneven_role(ranks, steps, low, high):
    return {
        "kind": "VERDICT_KIND_UNEVEN_ROLE",
        "phase": "device",
        "role": "llama70b#3",
        "peers": len(ranks),
        "ratio": 1.18,
        "z": 12.0,
        "executions": steps,
        "judged": steps,
        "since_ns": str(low),
        "until_ns": str(high),
        "cost_ns": str(6 * MS),
        "step_ns": str(STEP),
        "text": "UNEVEN the last stage llama70b/pp3 has 1.18 times the work of the other stages on all of its ranks",
    }


def hang(capture, ranks, low, high):
    """The rank that did not enter, in a capture that is recording."""
    begin, stream = max(low, high - 4000 * MS), ranks[min(6, len(ranks) - 1)]
    return {
        "kind": "VERDICT_KIND_HANG_NOT_ENTERED",
        "suspects": [core(capture, stream)],
        "suspects_total": 1,
        "peers": len(ranks) - 1,
        "since_ns": str(begin),
        "until_ns": str(high),
        "waiting": len(ranks) - 1,
        "op_id": "17",
        "ruled_out": [{"what": "stream", "figure": "its last canary is 0.2 s old"}],
        "text": f"HUNG rank {stream['gid']} did not enter all-reduce op 17, which {len(ranks) - 1} ranks wait in",
        "look": f"neurontrace why {capture.id} --json",
    }


def refused(capture, ranks, low, high):
    for stream in ranks:
        for gap in stream["gaps"]:
            if gap["kind"] == "loss" and gap["begin_ns"] < high and gap["end_ns"] > low:
                yield refusal("losses", [core(capture, stream)], gap, gap["events"],
                              f"{gap['events']} events were lost; the capture's certificate says where")
    suspended = [stream for stream in ranks if any(gap["kind"] == "suspension" for gap in stream["gaps"])]
    if suspended and suspended[0]["gaps"][0]["begin_ns"] < high and suspended[0]["gaps"][0]["end_ns"] > low:
        yield refusal("coverage", [core(capture, stream) for stream in suspended], suspended[0]["gaps"][0],
                      4 * len(suspended), "another capture had these workers for 1 s; look at that one")
    if len(ranks) < 4:
        yield {"reason": "few-peers", "cores_total": 0, "count": "0",
               "missing": "fewer than three ranks have the same role; record at least four ranks of a job"}


def refusal(reason, cores, gap, count, missing):
    return {"reason": reason, "cores": cores[:64], "cores_total": len(cores), "begin_ns": str(gap["begin_ns"]),
            "end_ns": str(gap["end_ns"]), "count": str(count), "missing": missing}
