// SPDX-License-Identifier: Apache-2.0
#include "agent/agent_metrics.h"

#include <utility>

#include "agent/source/canary_watch.h"

// Each metric is registered once with a function that reads its value; Publish calls all of them on
// the agent's sequence. docs/operator/metrics.md is checked against the names here.
namespace neurontrace {

AgentMetrics::AgentMetrics(prometheus::Registry& registry, const std::string& instance_id,
                           const Watched& watched)
    : registry_(registry),
      labels_({{"instance_id", instance_id}}),
      watched_(watched),
      core_events_(MakeCounterFamily(registry, "neurontrace_agent_core_events_total",
                                     "Events of one logical core stored in chunks", labels_)),
      core_events_lost_(MakeCounterFamily(
          registry, "neurontrace_agent_core_events_lost_total",
          "Events of one logical core lost before they reached the agent", labels_)),
      ring_seconds_{MakeGaugeFamily(registry, "neurontrace_agent_ring_seconds_to_overwrite",
                                    "Time until the runtime's ring of one logical core overwrites "
                                    "events after a fetch; the minimum over all workers",
                                    labels_),
                    "neuroncore",
                    {}},
      worker_loads_(registry, labels_),
      buffer_seconds_(MakeOptionalGauge(
          "neurontrace_agent_tap_buffer_seconds_to_full",
          "Time until the fullest tap's buffer overflows if nothing in it is released")),
      canary_age_seconds_(MakeOptionalGauge(
          "neurontrace_agent_canary_age_seconds",
          "Time since the last acknowledged canary was sent, the maximum over live streams")),
      canary_round_trip_seconds_(MakeOptionalGauge(
          "neurontrace_agent_canary_round_trip_seconds",
          "Time from sending a canary to its acknowledgement, the maximum over live streams")),
      answer_wait_seconds_(MakeOptionalGauge(
          "neurontrace_agent_answer_wait_seconds",
          "Time for which chunks have waited without any acknowledgement from the aggregator")) {
  // Everything is registered here, so that dashboards find each metric before its first change.
  AddSourceCounters();
  AddHostCounters();
  AddDeliveryMetrics();
  AddControlMetrics();
  AddClockMetrics();
  AddTriggerMetrics();
  if (watched_.spool != nullptr) AddSpoolMetrics(*watched_.spool);
}

void AgentMetrics::AddCounter(const char* name, const char* help, Read read) {
  counters_.push_back({&MakeCounter(registry_, name, help, labels_), std::move(read)});
}

void AgentMetrics::AddGauge(const char* name, const char* help, Read read) {
  gauges_.push_back({&MakeGauge(registry_, name, help, labels_), std::move(read)});
}

OptionalGauge AgentMetrics::MakeOptionalGauge(const char* name, const char* help) {
  return {MakeGaugeFamily(registry_, name, help, labels_)};
}

// A table rather than a call for each: help text and counter stay side by side. The counters are
// atomics, which any thread may read.
void AgentMetrics::AddSourceCounters() {
  const AgentSourceMetrics& sources = watched_.sources;
  const struct {
    const char* name;
    const char* help;
    const AgentSourceMetrics::Counter& counter;
  } kCounters[] = {
      {"neurontrace_agent_documents_total", "Fetch documents read from taps", sources.documents},
      {"neurontrace_agent_document_bytes_total", "Bytes of the fetch documents read from taps",
       sources.document_bytes},
      {"neurontrace_agent_events_decoded_total", "Events decoded", sources.events_decoded},
      {"neurontrace_agent_events_filtered_total", "Events decoded and not selected by the capture",
       sources.events_filtered},
      {"neurontrace_agent_events_left_out_total",
       "Events decoded and omitted by the agent to stay within a budget", sources.events_left_out},
      {"neurontrace_agent_fidelity_changes_total",
       "Changes of the level of detail of a worker's capture to stay within its budget",
       sources.fidelity_changes},
      {"neurontrace_agent_suspensions_total",
       "Suspensions of a standing capture in a worker for another capture", sources.suspensions},
      {"neurontrace_agent_suspension_reports_dropped_total",
       "Reports of suspensions that were dropped because their times are not usable",
       sources.suspension_reports_dropped},
      {"neurontrace_agent_events_over_limit_total", "Events lost because they exceed a limit",
       sources.events_unfit},
      {"neurontrace_agent_documents_malformed_total", "Documents with an unreadable remainder",
       sources.documents_malformed},
      {"neurontrace_agent_document_bytes_repaired_total", "Bytes of documents that were not UTF-8",
       sources.document_bytes_repaired},
      {"neurontrace_agent_events_skipped_total",
       "Events read again after a restart and skipped as already stored", sources.events_skipped},
      {"neurontrace_agent_events_after_end_total", "Events lost because their stream had ended",
       sources.events_after_end},
      {"neurontrace_agent_chunks_total", "Chunks closed", sources.chunks},
      {"neurontrace_agent_chunk_bytes_total", "Compressed bytes of closed chunks",
       sources.chunk_bytes},
      {"neurontrace_agent_chunks_refused_total", "Chunks that will never be stored",
       sources.chunks_refused},
      {"neurontrace_agent_events_lost_total", "Events lost, where the number is known",
       sources.losses},
      {"neurontrace_agent_taps_connected_total", "Taps that connected", sources.taps_connected},
      {"neurontrace_agent_taps_refused_total", "Taps with an invalid greeting",
       sources.taps_refused},
      {"neurontrace_agent_tap_protocol_errors_total",
       "Taps disconnected because of invalid messages", sources.taps_misbehaved},
      {"neurontrace_agent_tap_accepts_deferred_total",
       "Times that accepting taps was postponed because too many received descriptors could not be "
       "closed",
       sources.tap_accepts_put_off},
      {"neurontrace_agent_tap_documents_refused_total",
       "Fetch documents lost because a tap's buffer was full", sources.tap_documents_refused},
      {"neurontrace_agent_tap_fetches_deferred_total",
       "Fetches postponed because a tap's buffer was full", sources.tap_fetches_deferred},
      {"neurontrace_agent_tap_fetches_failed_total", "Fetches that failed in the runtime",
       sources.tap_fetches_failed},
      {"neurontrace_agent_workers_gone_total", "Workers whose process ended",
       sources.workers_removed},
      {"neurontrace_agent_records_unknown_total",
       "Records of taps skipped because their type is unknown", sources.records_unknown},
      {"neurontrace_agent_canaries_total", "Canaries sent", sources.canaries},
      {"neurontrace_agent_reads_waiting_total",
       "Times that a source had to wait for room in the queue", sources.reads_waiting},
  };
  for (const auto& row : kCounters) {
    AddCounter(row.name, row.help,
               [&counter = row.counter] { return counter.load(std::memory_order_relaxed); });
  }
  AddGauge("neurontrace_agent_workers", "Connected workers",
           [&sources] { return sources.workers.load(std::memory_order_relaxed); });
}

// Counters of sources other than taps.
void AgentMetrics::AddHostCounters() {
  const AgentSourceMetrics& sources = watched_.sources;
  const auto add = [this](const char* name, const char* help,
                          const AgentSourceMetrics::Counter& counter) {
    AddCounter(name, help, [&counter] { return counter.load(std::memory_order_relaxed); });
  };
  add("neurontrace_agent_annotators_connected_total",
      "Connections of annotation libraries accepted", sources.annotators_connected);
  add("neurontrace_agent_annotations_recorded_total",
      "Begins, ends and marks of annotations recorded, for each capture",
      sources.annotations_recorded);
  add("neurontrace_agent_annotations_dropped_total",
      "Annotations dropped in their process because a ring was full", sources.annotations_dropped);
  add("neurontrace_agent_annotation_ends_unmatched_total",
      "Ends of annotated ranges whose begin is not in the capture",
      sources.annotation_ends_unmatched);
  add("neurontrace_agent_host_samples_total", "Samples of the host's processors and memory taken",
      sources.host_samples);
  add("neurontrace_agent_host_readings_failed_total",
      "Times that /proc/stat or /proc/meminfo could not be read or parsed",
      sources.host_readings_failed);
  add("neurontrace_agent_kineto_datagrams_total", "Datagrams of PyTorch's workers received",
      sources.kineto_datagrams);
  add("neurontrace_agent_kineto_datagrams_refused_total",
      "Datagrams in --kineto-dir that were malformed or not from a socket there",
      sources.kineto_datagrams_refused);
  add("neurontrace_agent_kineto_clients_refused_total",
      "Requests of PyTorch's workers that were too many or not identified",
      sources.kineto_clients_refused);
  add("neurontrace_agent_kineto_orders_total", "Orders to record given to PyTorch's workers",
      sources.kineto_orders);
  add("neurontrace_agent_kineto_answers_failed_total",
      "Answers that a PyTorch worker's socket did not take", sources.kineto_answers_failed);
  add("neurontrace_agent_kineto_sockets_removed_total",
      "Sockets of PyTorch workers that had ended, removed from --kineto-dir",
      sources.kineto_sockets_removed);
  add("neurontrace_agent_xla_orders_total", "Orders to record given to XLA's profiler in workers",
      sources.xla_orders);
  add("neurontrace_agent_xla_traces_total", "Traces received from XLA's profiler and saved",
      sources.xla_traces);
  add("neurontrace_agent_xla_orders_failed_total",
      "Orders that XLA's profiler refused, or did not answer with a trace that could be saved",
      sources.xla_orders_failed);
  add("neurontrace_agent_artifacts_kept_total", "Artifacts that the aggregator stored",
      sources.artifacts_kept);
  add("neurontrace_agent_artifacts_changed_total", "Artifacts that changed while they were read",
      sources.artifacts_changed);
  add("neurontrace_agent_artifacts_refused_total", "Artifacts that the aggregator refused",
      sources.artifacts_refused);
  add("neurontrace_agent_artifacts_given_up_total", "Artifacts not transferred in time",
      sources.artifacts_given_up);
  add("neurontrace_agent_artifact_scans_truncated_total",
      "Times that inspect directories had more entries than the limit",
      sources.artifact_looks_cut_short);
}

// The queue and the uploader outlive this, so the functions may refer to them.
void AgentMetrics::AddDeliveryMetrics() {
  const DeliveryQueue& queue = watched_.queue;
  const Uploader& uploader = watched_.uploader;
  AddGauge("neurontrace_agent_queue_bytes", "Bytes of chunks in memory",
           [&queue] { return queue.bytes(); });
  AddGauge("neurontrace_agent_queue_chunks",
           "Chunks waiting for the aggregator, in memory or in the spool",
           [&queue] { return queue.chunks(); });
  AddGauge("neurontrace_agent_queue_streams", "Streams with a queue",
           [&queue] { return queue.streams(); });
  AddCounter("neurontrace_agent_queue_overflows_total", "Chunks lost because the queue was full",
             [&queue] { return queue.counters().chunks_refused_full; });
  AddCounter("neurontrace_agent_chunks_stored_total", "Chunks acknowledged as durable",
             [&queue] { return queue.counters().chunks_stored; });
  AddCounter("neurontrace_agent_events_stored_total", "Events in chunks acknowledged as durable",
             [&queue] { return queue.counters().events_stored; });
  AddCounter("neurontrace_agent_chunks_lost_total", "Chunks lost before they were acknowledged",
             [&queue] { return queue.counters().chunks_lost; });
  AddCounter("neurontrace_agent_chunk_events_lost_total",
             "Events in chunks lost before they were acknowledged",
             [&queue] { return queue.counters().events_lost; });
  AddGauge("neurontrace_agent_unacknowledged_chunks", "Chunks sent and not yet acknowledged",
           [&uploader] { return uploader.unacked(); });
  AddGauge("neurontrace_agent_upload_connected", "1 while an upload call is open",
           [&uploader] { return uploader.connected() ? 1 : 0; });
  AddCounter("neurontrace_agent_chunks_sent_total", "Chunks sent, repeats included",
             [&uploader] { return uploader.counters().chunks_sent; });
  AddCounter("neurontrace_agent_bytes_sent_total", "Bytes of chunks sent, repeats included",
             [&uploader] { return uploader.counters().bytes_sent; });
  AddCounter("neurontrace_agent_upload_calls_total", "Upload calls started",
             [&uploader] { return uploader.counters().calls; });
  AddCounter("neurontrace_agent_upload_refusals_total",
             "Chunks that the aggregator refused permanently",
             [&uploader] { return uploader.counters().chunks_refused; });
  AddCounter("neurontrace_agent_upload_gaps_total", "Times a stream resent earlier chunks",
             [&uploader] { return uploader.counters().gaps; });
  AddCounter("neurontrace_agent_upload_busy_total", "Times the aggregator asked to wait",
             [&uploader] { return uploader.counters().busy; });
  AddCounter("neurontrace_agent_streams_abandoned_total", "Streams abandoned with unsent chunks",
             [&uploader] { return uploader.counters().streams_abandoned; });
  AddCounter("neurontrace_agent_upload_chunks_missing_total",
             "Times that the aggregator requested chunks that no longer exist",
             [&uploader] { return uploader.counters().gone; });
}

// Metrics of the Control call: connection, captures, orders and reports.
void AgentMetrics::AddControlMetrics() {
  const ControlSession& control = watched_.control;
  AddGauge("neurontrace_agent_aggregator_connected",
           "1 while the aggregator has accepted this agent",
           [&control] { return control.welcomed() ? 1 : 0; });
  AddGauge("neurontrace_agent_captures", "Captures known to this agent",
           [&control] { return control.captures(); });
  AddCounter("neurontrace_agent_control_calls_total", "Control calls started",
             [&control] { return control.counters().calls; });
  AddCounter("neurontrace_agent_aggregators_refused_total",
             "Connections to an aggregator whose store differs from the spool's",
             [&control] { return control.counters().aggregators_refused; });
  AddCounter("neurontrace_agent_orders_total", "Orders from the aggregator",
             [&control] { return control.counters().orders; });
  AddCounter("neurontrace_agent_reports_total", "Reports sent to the aggregator",
             [&control] { return control.counters().reports_sent; });
  AddCounter("neurontrace_agent_workers_refused_total", "Workers beyond the reporting limit",
             [&control] { return control.counters().workers_refused; });
}

// Metrics of the rules that this agent evaluates.
void AgentMetrics::AddTriggerMetrics() {
  const AgentTriggers& triggers = watched_.triggers;
  AddGauge("neurontrace_agent_trigger_rules", "Rules of triggers that the aggregator sent",
           [&triggers] { return triggers.rules(); });
  AddCounter("neurontrace_agent_trigger_rules_refused_total",
             "Invalid trigger rules that the aggregator sent",
             [&triggers] { return triggers.counters().rules_refused; });
  AddCounter("neurontrace_agent_triggers_fired_total", "Triggers reported to the aggregator",
             [&triggers] { return triggers.reports().fired; });
  AddCounter("neurontrace_agent_triggers_suppressed_total",
             "Triggers not reported because the same rule and worker fired within the last second",
             [&triggers] { return triggers.reports().suppressed; });
  AddCounter("neurontrace_agent_triggers_undelivered_total",
             "Triggers without effect because the aggregator was not connected",
             [&triggers] { return triggers.reports().undelivered; });
  AddCounter("neurontrace_agent_trigger_events_total", "Events evaluated by rules",
             [&triggers] { return triggers.counters().events; });
  AddCounter("neurontrace_agent_trigger_documents_stale_total",
             "Documents not evaluated by rules because they were fetched too long ago",
             [&triggers] { return triggers.counters().stale; });
  AddCounter("neurontrace_agent_trigger_check_seconds_total", "Time spent on time-based rules",
             [&triggers] { return static_cast<double>(triggers.counters().looking_ns) * 1e-9; });
}

// These read clock_stats_, the copy of the last Publish; see there.
void AgentMetrics::AddClockMetrics() {
  const AgentClocks::Stats& clocks = clock_stats_;
  AddGauge("neurontrace_agent_clock_connected", "1 while the aggregator accepts clock measurements",
           [&clocks] { return clocks.connected ? 1 : 0; });
  AddGauge("neurontrace_agent_clock_probes_in_call",
           "1 while clock probes use gRPC because UDP gets no answers",
           [&clocks] { return clocks.uses_stream ? 1 : 0; });
  AddGauge("neurontrace_agent_clock_backlog_bytes",
           "Bytes of clock evidence not yet sent to the aggregator",
           [&clocks] { return clocks.backlog_bytes; });
  AddCounter("neurontrace_agent_clock_batches_stored_total",
             "Batches of clock evidence that the aggregator has stored",
             [&clocks] { return clocks.link.batches_stored; });
  AddCounter("neurontrace_agent_clock_batches_dropped_total",
             "Batches dropped because the aggregator was disconnected for too long",
             [&clocks] { return clocks.link.batches_dropped; });
  AddCounter("neurontrace_agent_clock_bytes_sent_total", "Bytes of clock evidence sent",
             [&clocks] { return clocks.link.bytes_sent; });
  AddCounter("neurontrace_agent_clock_snapshots_total", "Snapshots of the host's clocks kept",
             [&clocks] { return clocks.collector.snapshots; });
  AddCounter("neurontrace_agent_clock_snapshots_dropped_total",
             "Useful snapshots dropped because there were too many",
             [&clocks] { return clocks.snapshots_dropped; });
  AddCounter("neurontrace_agent_clock_exchanges_total", "Clock probes that were answered",
             [&clocks] { return clocks.collector.exchanges; });
  AddCounter("neurontrace_agent_clock_probes_sent_total", "Clock probes sent over UDP",
             [&clocks] { return clocks.udp.sent; });
  AddCounter("neurontrace_agent_clock_probes_refused_total",
             "Packets that did not match an open clock probe",
             [&clocks] { return clocks.udp.refused + clocks.udp.late; });
  AddCounter("neurontrace_agent_clock_probes_without_kernel_stamp_total",
             "Answers without a kernel receive timestamp",
             [&clocks] { return clocks.udp_without_kernel_stamp; });
  AddCounter("neurontrace_agent_clock_questions_sent_total", "Clock probes sent in gRPC calls",
             [&clocks] { return clocks.stream.sent; });
  AddCounter("neurontrace_agent_clock_realtime_steps_total", "Times that CLOCK_REALTIME was set",
             [&clocks] { return clocks.collector.realtime_steps; });
  AddCounter("neurontrace_agent_clock_breaks_total",
             "Pauses, suspends, migrations and changes of the clock source", [&clocks] {
               return clocks.collector.pauses + clocks.collector.suspends +
                      clocks.collector.migrations + clocks.collector.clock_source_changes;
             });
  AddCounter("neurontrace_agent_clock_utc_readings_total",
             "UTC readings with an error bound from a PHC, ClockBound or chronyd",
             [&clocks] { return clocks.collector.utc_readings; });
}

// Registered only with a spool, so that "--spool none" does not look like an empty spool.
void AgentMetrics::AddSpoolMetrics(const Spool& spool) {
  const DeliveryQueue& queue = watched_.queue;
  AddGauge("neurontrace_agent_spool_bytes", "Bytes of the spool's segments",
           [&spool] { return spool.bytes(); });
  AddGauge("neurontrace_agent_spool_bytes_max", "Maximum size of the spool",
           [&spool] { return spool.bytes_max(); });
  AddGauge("neurontrace_agent_spool_chunks",
           "Chunks in the spool that the aggregator has not stored",
           [&spool] { return spool.chunks(); });
  AddGauge("neurontrace_agent_spool_segments", "Segments of the spool",
           [&spool] { return spool.segments(); });
  AddGauge("neurontrace_agent_spool_captures", "Captures with segments in the spool",
           [&spool] { return spool.captures(); });
  AddGauge("neurontrace_agent_spool_failing", "1 while writes to the spool's disk fail",
           [&spool] { return spool.health().ok() ? 0 : 1; });
  AddGauge("neurontrace_agent_spool_full", "1 while the spool is full and new chunks wait",
           [&spool] { return spool.full() ? 1 : 0; });
  AddGauge("neurontrace_agent_spool_unkept_chunks", "Chunks in memory and not in the spool",
           [&queue] { return queue.unspooled_chunks(); });
  AddCounter("neurontrace_agent_spool_chunks_kept_total", "Chunks made durable in the spool",
             [&spool] { return spool.counters().chunks_kept; });
  AddCounter("neurontrace_agent_spool_bytes_kept_total",
             "Bytes of chunks made durable in the spool",
             [&spool] { return spool.counters().bytes_kept; });
  AddCounter("neurontrace_agent_spool_batches_total", "Writes to the spool, with a sync each",
             [&spool] { return spool.counters().batches; });
  AddCounter("neurontrace_agent_spool_failures_total", "Failed disk operations",
             [&spool] { return spool.counters().failures; });
  AddCounter("neurontrace_agent_spool_segments_dropped_total", "Segments dropped to make room",
             [&spool] { return spool.counters().segments_dropped; });
  AddCounter("neurontrace_agent_spool_chunks_dropped_total", "Chunks lost with dropped segments",
             [&queue] { return queue.counters().chunks_dropped; });
  AddCounter("neurontrace_agent_spool_chunks_damaged_total",
             "Chunks lost because the disk could not return them",
             [&queue] { return queue.counters().chunks_damaged; });
  AddCounter("neurontrace_agent_spool_chunks_recovered_total",
             "Chunks found in the spool at startup",
             [&queue] { return queue.counters().chunks_recovered; });
  AddCounter("neurontrace_agent_spool_unreadable_files_total",
             "Spool files that could not be read at startup",
             [&spool] { return spool.recovered().files_unreadable; });
  AddCounter("neurontrace_agent_spool_quarantined_chunks_total",
             "Refused chunks moved to quarantine for inspection",
             [&spool] { return spool.counters().chunks_set_aside; });
  AddCounter("neurontrace_agent_spool_quarantine_overflows_total",
             "Refused chunks not quarantined because the quarantine is full",
             [&spool] { return spool.counters().chunks_not_set_aside; });
}

void AgentMetrics::Publish() {
  // First: the readers that AddClockMetrics made refer to this copy, as the clock thread's own
  // counters must not be read from here.
  clock_stats_ = watched_.clocks.stats();
  // Fixed metrics first; then those with labels that depend on what runs.
  for (const auto& counter : counters_) RaiseCounter(*counter.metric, counter.read());
  for (const auto& gauge : gauges_) gauge.metric->Set(gauge.read());
  PublishCores();
  PublishHeadroom();
  PublishCanaries();
  worker_loads_.Publish(watched_.taps.loads());
  answer_wait_seconds_.SetNs(watched_.answers.waited_ns());
}

// The smallest values over all workers: the first ring to overflow is the one that matters.
void AgentMetrics::PublishHeadroom() {
  const TapSource::Headroom headroom = watched_.taps.headroom();
  ring_seconds_.Set(headroom.rings, 1e-9);
  buffer_seconds_.SetNs(headroom.buffer);
}

void AgentMetrics::PublishCanaries() {
  const CanaryWatch& watch = watched_.sources.canary_watch;
  // The stream that has waited longest bounds how far any of them lags behind.
  const auto oldest = watch.oldest(watched_.clock.MonotonicNs());
  canary_age_seconds_.SetNs(oldest ? std::optional(oldest->age_ns) : std::nullopt);
  canary_round_trip_seconds_.SetNs(watch.round_trip_ns());
}

// By nc_idx, summed over workers: series for each worker would grow without limit.
void AgentMetrics::PublishCores() {
  for (const auto& [nc_idx, core] : watched_.queue.cores()) {
    const prometheus::Labels labels = {{"neuroncore", std::to_string(nc_idx)}};
    RaiseCounter(core_events_.Add(labels), static_cast<double>(core.events));
    RaiseCounter(core_events_lost_.Add(labels), static_cast<double>(core.events_lost));
  }
}

}  // namespace neurontrace
