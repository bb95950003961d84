# SPDX-License-Identifier: Apache-2.0
"""What the dashboards show: rows of panels, each with its queries. make_dashboards.py makes Grafana's files of it."""

AGENTS = 'neurontrace_agent_{}{{instance_id=~"$instance_id"}}'
AGGREGATORS = 'neurontrace_aggregator_{}{{instance=~"$instance"}}'


def agent(name):
    return AGENTS.format(name)


def aggregator(name):
    return AGGREGATORS.format(name)


def rate(series):
    return f"rate({series}[$__rate_interval])"


def how_often(series, by="", window="$__rate_interval"):
    """What happens seldom, in the interval before each point: a whole number, though Prometheus extrapolates."""
    return f"round(sum{by} (increase({series}[{window}])))"


def in_range(series):
    """How often in all that the dashboard shows."""
    return how_often(series, window="$__range")


def stat(title, says, expr, **more):
    return {"type": "stat", "title": title, "says": says, "queries": [(expr, "")], "width": 4, **more}


def graph(title, says, *queries, **more):
    return {"type": "timeseries", "title": title, "says": says, "queries": list(queries), **more}


def by_instance(expr, how="sum"):
    return f"{how} by (instance_id) ({expr})", "{{instance_id}}"


def headroom(title, says, series, least):
    """What is short is worst. Seconds on a logarithmic axis, which has room for half a second and for a day, but not
    for 0: what is less than a tenth of a second lies on its floor."""
    expr, name = by_instance(series, "min")
    return graph(title, says, (f"clamp_min({expr}, 0.1)", name), unit="s", min=0.1, log=True, least=True, below=least)


def quantiles(histogram, of=aggregator):
    """Half, nine tenths and 99 of 100 of what it observed."""
    buckets = f"sum by (le) ({rate(of(histogram + '_bucket'))})"
    return [(f"histogram_quantile({q}, {buckets})", f"p{round(q * 100)}") for q in (0.5, 0.9, 0.99)]


FLEET = {
    "name": "fleet", "title": "Fleet", "over": ("neurontrace_agent_workers", "instance_id"),
    "says": "All agents: recorded events, headroom, losses, and the cost of recording.",
    "rows": [
        ("Now", [
            stat("Agents up", "Agents that answer Prometheus.", 'sum(up{job="neurontrace-agent"})', below=1, width=3),
            stat("Agents down", "Agents that do not answer Prometheus.",
                 'count(up{job="neurontrace-agent"}) - sum(up{job="neurontrace-agent"})', red=1, width=3),
            stat("Without an aggregator", "Agents that are not connected to an aggregator.",
                 f"count({agent('aggregator_connected')}) - sum({agent('aggregator_connected')})", red=1),
            stat("Workers", "Worker processes known to agents.", f"sum({agent('workers')})", width=3),
            stat("Recorded", "Events recorded in chunks.", f"sum({rate(agent('core_events_total'))})", unit="cps"),
            stat("Lost in the range", "Events lost before they reached an agent, or discarded by one.",
                 in_range(agent("losses_total")), red=1),
            stat("Fullest spool", "Share of its maximum size.",
                 f"max({agent('spool_bytes')} / {agent('spool_bytes_max')})",
                 unit="percentunit", red=0.8, width=3),
        ]),
        ("Recording", [
            graph("Events by instance", "Events recorded in chunks.",
                  by_instance(rate(agent("core_events_total"))), unit="cps"),
            graph("Bytes by instance", "Compressed bytes of chunks.",
                  by_instance(rate(agent("chunk_bytes_total"))), unit="Bps"),
            graph("Decoded but not recorded", "Decoded events: filtered by a capture, left out to stay within a "
                  "budget, or skipped because they were read before.",
                  (f"sum({rate(agent('events_decoded_total'))})", "decoded"),
                  (f"sum({rate(agent('events_filtered_total'))})", "filtered"),
                  (f"sum({rate(agent('events_left_out_total'))})", "left out"),
                  (f"sum({rate(agent('events_skipped_total'))})", "skipped"), unit="cps"),
        ]),
        ("Headroom", [
            headroom("Runtime's rings, minimum", "Seconds from a fetch until the ring overwrites events. Below half a "
                     "second events are about to be lost.", agent("ring_seconds_to_overwrite"), 0.5),
            headroom("Taps' buffers, minimum", "Seconds until the fullest buffer of a tap is full. Below a second "
                     "events are about to be lost.", agent("tap_buffer_seconds_to_full"), 1),
            graph("Spool", "Share of each spool's maximum size.",
                  (f"{agent('spool_bytes')} / {agent('spool_bytes_max')}", "{{instance_id}}"),
                  unit="percentunit", red=0.8),
        ]),
        ("Losses", [
            graph("Losses by place and reason", "Lost events, by the places and reasons that certificates use.",
                  (f"sum by (place, reason) ({rate(agent('losses_total'))})", "{{place}}: {{reason}}"), unit="cps"),
            graph("Losses by instance", "Lost events, in all places.",
                  by_instance(rate(agent("losses_total"))), unit="cps"),
            graph("Losses by cause", "Documents and chunks, not events.",
                  (f"sum({rate(agent('tap_documents_refused_total'))})", "no room in a tap's buffer"),
                  (f"sum({rate(agent('documents_malformed_total'))})", "documents malformed"),
                  (f"sum({rate(agent('queue_overflows_total'))})", "queue full"),
                  (f"sum({rate(agent('spool_chunks_dropped_total'))})", "spool: dropped"),
                  (f"sum({rate(agent('spool_chunks_damaged_total'))})", "spool: damaged"),
                  (f"sum({rate(agent('upload_refusals_total'))})", "refused by the aggregator"),
                  (f"sum({rate(agent('losses_of_unknown_size_total'))})", "of unknown size"), unit="cps"),
        ]),
        ("On the way", [
            graph("Waiting for the aggregator", "Chunks in memory or in the spool.",
                  by_instance(agent("queue_chunks")), decimals=0),
            graph("Time to the acknowledgement", "From sending a chunk to the answer that it is durable.",
                  *quantiles("acknowledge_seconds", agent), unit="s"),
            graph("Disks under spools", "Free space of the five fullest disks.",
                  (f"bottomk(5, {agent('spool_disk_free_bytes')})", "{{instance_id}}"), unit="bytes", below=500e6,
                  least=True),
            graph("Agents by version", "Running agents, by version.",
                  ('count by (version) (neurontrace_build_info{program="neurontrace-agent"})', "{{version}}"),
                  decimals=0),
            graph("Canary's round trip", "From sending a canary to its acknowledgement, including the store.",
                  by_instance(agent("canary_round_trip_seconds"), "max"), unit="s"),
            graph("Canary's age", "Since the last acknowledged canary was sent. Above 180 s no data flows.",
                  by_instance(agent("canary_age_seconds"), "max"), unit="s", red=180),
        ]),
        ("Cost and clocks", [
            graph("Processor time of tracing", "Processor time of tap and agent, for the most expensive worker of each "
                  "instance.",
                  by_instance(agent("worker_core_ppm") + " / 1e6", "max"), unit="percentunit"),
            graph("Clock probes", "Answered probes; without any, times of that instance have no bound.",
                  by_instance(rate(agent("clock_exchanges_total"))), unit="cps", least=True),
            graph("Clocks set or stopped", "In each interval: steps of CLOCK_REALTIME, pauses, suspends, migrations.",
                  (how_often(agent("clock_realtime_steps_total"), " by (instance_id)") + " + "
                   + how_often(agent("clock_breaks_total"), " by (instance_id)"), "{{instance_id}}"), decimals=0),
        ]),
    ],
}

AGGREGATOR = {
    "name": "aggregator", "title": "Aggregator", "over": ("neurontrace_aggregator_agents_connected", "instance"),
    "says": "The aggregator: ingest, time to durability, store, clocks and retention.",
    "rows": [
        ("Now", [
            stat("Up", "Aggregators that answer Prometheus.", 'sum(up{job="neurontrace-aggregator"})', below=1),
            stat("Agents", "Agents connected.", f"sum({aggregator('agents_connected')})"),
            stat("Workers", "Workers of connected agents.", f"sum({aggregator('workers')})"),
            stat("Store", "Bytes of the store on disk.", f"sum({aggregator('store_bytes')})", unit="bytes"),
            stat("Damaged chunks", "Chunks found damaged on disk since the start.",
                 f"sum({aggregator('store_chunks_damaged')})", red=1),
            stat("Writes refused", "Writes that the store refused in the selected range.",
                 in_range(aggregator("store_errors_total")), red=1),
        ]),
        ("Ingest", [
            graph("Events stored", "Events in chunks that are durable.",
                  (f"sum({rate(aggregator('events_stored_total'))})", "events"), unit="cps"),
            graph("Bytes stored", "Compressed bytes of durable chunks.",
                  (f"sum({rate(aggregator('chunk_bytes_stored_total'))})", "bytes"), unit="Bps"),
            graph("In flight", "Bytes received and not yet durable; at 128 MiB the aggregator stops reading.",
                  (aggregator("ingest_bytes_in_flight"), "{{instance}}"), unit="bytes", red=134217728),
            graph("Chunks not stored", "Chunks refused as gap or busy are sent again; duplicates are retries.",
                  (f"sum by (reason) ({rate(aggregator('chunks_refused_total'))})", "{{reason}}"),
                  (f"sum({rate(aggregator('chunks_duplicate_total'))})", "duplicate"),
                  (f"sum({rate(aggregator('chunks_conflicting_total'))})", "conflicting"), unit="cps"),
            graph("Duration of a commit", "Time to write and sync a group of chunks before it is acknowledged.",
                  *quantiles("commit_seconds"), unit="s"),
            graph("Chunks in a commit", "Number of chunks in a group; it grows when the disk is slow.",
                  *quantiles("commit_chunks")),
        ]),
        ("Store and retention", [
            graph("Store on disk", "Size of the database with its garbage, the log, and artifacts.",
                  (aggregator("store_bytes"), "store"), (aggregator("artifact_store_bytes"), "artifacts"),
                  (aggregator("store_wal_bytes"), "log"), (aggregator("store_blob_garbage_bytes"), "garbage"),
                  unit="bytes"),
            graph("Disk", "Free space of the store's disk, now and extrapolated to four hours; below 0 the disk "
                  "will be full by then.",
                  (aggregator("disk_free_bytes"), "free"),
                  (f"predict_linear({aggregator('disk_free_bytes')}[1h], 4 * 3600)", "in four hours"), unit="bytes",
                  below=5e9, min=None),
            graph("RocksDB's backlog", "Bytes in write buffers, and bytes that compaction has yet to rewrite.",
                  (aggregator("store_memtable_bytes"), "write buffers"),
                  (aggregator("store_compaction_pending_bytes"), "to compact"), unit="bytes"),
            graph("RocksDB stalls", "1 while RocksDB slows down or stops writers; background errors in each interval.",
                  (aggregator("store_write_stalled"), "stalled"),
                  (how_often(aggregator("store_background_errors_total")), "errors"), red=1, decimals=0),
            graph("Events lost", "Lost events by place and reason, at the time the store learns of them.",
                  (f"sum by (place, reason) ({rate(aggregator('events_lost_total'))})", "{{place}}: {{reason}}"),
                  unit="cps"),
            graph("Expired", "Bytes deleted from continuous captures.",
                  (f"sum({rate(aggregator('expired_bytes_total'))})", "bytes"), unit="Bps"),
            graph("Time trimming", "Share of time spent deleting expired data; writers wait for each step.",
                  (f"sum({rate(aggregator('trim_seconds_total'))})", "trimming"), unit="percentunit"),
        ]),
        ("Flow and clocks", [
            graph("Canary's age", "Age of the oldest canary of all live streams. Above 180 s no data flows.",
                  (aggregator("canary_age_seconds"), "{{instance}}"), unit="s", red=180),
            graph("Clocks with the widest bounds", "Largest error of an instance's times, for the worst ten instances.",
                  (f"topk(10, {aggregator('clock_bound_seconds')})", "{{instance_id}}"), unit="s", red=0.001),
            graph("Probes answered", "Probes answered over UDP, and in calls if an agent cannot reach the UDP port.",
                  (f"sum({rate(aggregator('probes_answered_total'))})", "UDP"),
                  (f"sum({rate(aggregator('clock_questions_answered_total'))})", "in calls"), unit="cps"),
            graph("Probes refused", "Forged and replayed probes, which somebody sends in the name of an agent.",
                  (f"sum by (reason) ({rate(aggregator('probes_refused_total'))})", "{{reason}}"), unit="cps"),
        ]),
    ],
}

CAPTURES = {
    "name": "captures", "title": "Captures and exports",
    "over": ("neurontrace_aggregator_agents_connected", "instance"),
    "says": "Captures, exports, triggers and artifacts.",
    "rows": [
        ("Now", [
            stat("Captures running", "Captures that are arming, recording or stopping.",
                 f"sum({aggregator('captures_running')})"),
            stat("Captures stored", "Captures in the store.", f"sum({aggregator('captures_stored')})"),
            stat("Streams", "Streams of running captures.", f"sum({aggregator('streams_live')})"),
            stat("Captures not begun", "Captures in the selected range that matched no worker, or too few that could "
                 "take part.",
                 in_range(aggregator("captures_not_begun_total")), red=1),
            stat("Exports failed", "Failed exports in the selected range.",
                 in_range(aggregator("exports_failed_total")), red=1),
            stat("Standing exports pending", "Standing exports not yet written.",
                 f"sum({aggregator('standing_exports_pending')})"),
        ]),
        ("Captures", [
            graph("Captures begun and not begun", "Captures in each interval; expired captures were deleted by their "
                  "retention.",
                  (how_often(aggregator("captures_begun_total")), "begun"),
                  (how_often(aggregator("captures_not_begun_total")), "not begun"),
                  (how_often(aggregator("captures_expired_total")), "expired"), decimals=0),
            graph("Captures ended", "Captures that ended in each interval, by outcome.",
                  (how_often(aggregator("captures_ended_total"), " by (outcome)"),
                   "{{outcome}}"), decimals=0),
            graph("Captures refused", "Refused commands to start a capture, by reason.",
                  (how_often(aggregator("captures_refused_total"), " by (reason)"),
                   "{{reason}}"), decimals=0),
            graph("Time to arm", "From the command to the slowest agent's answer.",
                  *quantiles("arm_seconds"), unit="s"),
            graph("Workers refused", "Selected workers that were not recorded since the aggregator started, by "
                  "obstacle.",
                  (f"sum by (obstacle) ({aggregator('workers_refused_total')})", "{{obstacle}}"), decimals=0),
        ]),
        ("Exports", [
            graph("Exports running", "At most eight requested exports and one standing export.",
                  (aggregator("exports_running"), "{{instance}}"), decimals=0),
            graph("Exports begun, failed, refused", "Exports in each interval.",
                  (how_often(aggregator("exports_total")), "begun"),
                  (how_often(aggregator("exports_failed_total")), "failed"),
                  (how_often(aggregator("exports_refused_total")), "refused"), decimals=0),
            graph("Duration of an export", "Duration of exports, including failed ones.",
                  *quantiles("export_seconds"), unit="s"),
            graph("Bytes of exports", "Bytes written, by format.",
                  (f"sum by (format) ({rate(aggregator('export_bytes_total'))})", "{{format}}"), unit="Bps"),
            graph("Standing exports written", "Standing exports in each interval.",
                  (how_often(aggregator("standing_exports_done_total")), "done"),
                  (how_often(aggregator("standing_exports_retried_total")), "tried again"),
                  (how_often(aggregator("standing_exports_failed_total")), "given up"), decimals=0),
        ]),
        ("Triggers and artifacts", [
            graph("Rules fired", "Captures requested by rules in each interval.",
                  (how_often(aggregator("triggers_fired_total")), "fired"), decimals=0),
            graph("Fired without a capture of their own", "Suppressed triggers in each interval, by reason.",
                  (how_often(aggregator("triggers_suppressed_total"), " by (reason)"),
                   "{{reason}}"), decimals=0),
            graph("Artifacts", "Files of the vendor's profiler in each interval.",
                  (how_often(aggregator("artifacts_kept_total")), "kept"),
                  (how_often(aggregator("artifacts_abandoned_total")), "not handed over"), decimals=0),
        ]),
    ],
}

DASHBOARDS = [FLEET, AGGREGATOR, CAPTURES]
