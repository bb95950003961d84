// SPDX-License-Identifier: Apache-2.0
#include "aggregator/aggregator_metrics.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/trace/capture_obstacle.h"
#include "lib/trace/clock_limits.h"
#include "lib/trace/export_traits.h"
#include "lib/trace/loss_table.h"
#include "lib/wire/export_options.h"

namespace neurontrace {
namespace {

prometheus::Counter& RefusedConnections(prometheus::Registry& registry, const char* reason) {
  return MakeCounter(registry, "neurontrace_aggregator_connections_refused_total",
                     "Connections closed at once", {{"reason", reason}});
}

prometheus::Histogram& Seconds(prometheus::Registry& registry, const char* name, const char* help) {
  return MakeHistogram(registry, name, help, {0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10});
}

std::string_view OutcomeWord(CaptureState state) {
  if (state == CaptureState::kNotBegun) return "not_begun";
  return state == CaptureState::kComplete ? "complete" : "incomplete";
}

// As Coordinator::StartCapture and those before it mean their errors.
std::string_view RefusalWord(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return "invalid";
    case absl::StatusCode::kResourceExhausted:
      return "limit";
    case absl::StatusCode::kFailedPrecondition:
      return "precondition";
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return "not_permitted";
    default:
      return "failed";
  }
}

constexpr CaptureState kOutcomes[] = {CaptureState::kComplete, CaptureState::kIncomplete,
                                      CaptureState::kNotBegun};
constexpr absl::StatusCode kRefusals[] = {
    absl::StatusCode::kInvalidArgument, absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kFailedPrecondition, absl::StatusCode::kPermissionDenied,
    absl::StatusCode::kUnavailable};

// The bounds that are shown: the widest.
std::map<std::string, uint64_t> WidestOf(const std::map<std::string, uint64_t>& bounds) {
  if (bounds.size() <= limits::kClockBoundSeriesMax) return bounds;
  std::vector<std::pair<uint64_t, std::string>> by_width;
  by_width.reserve(bounds.size());
  for (const auto& [instance, bound_ns] : bounds) by_width.emplace_back(bound_ns, instance);
  std::partial_sort(by_width.begin(), by_width.begin() + limits::kClockBoundSeriesMax,
                    by_width.end(), std::greater<>());
  std::map<std::string, uint64_t> widest;
  for (size_t i = 0; i < limits::kClockBoundSeriesMax; ++i) {
    widest.emplace(std::move(by_width[i].second), by_width[i].first);
  }
  return widest;
}

// One that writes several has one sum.
constexpr char kSeveral[] = "several";

std::string FormatWord(const v1::ExportRequest& request) {
  if (request.more_formats_size() != 0) return kSeveral;
  const ExportTraits* const traits = TraitsOf(request.format());
  return traits == nullptr ? "unknown" : std::string(traits->name());
}

constexpr char kCancelled[] = "cancelled";
constexpr char kInvalid[] = "invalid";
constexpr char kNotFound[] = "not_found";
constexpr char kDestination[] = "destination";
constexpr char kStore[] = "store";

const char* FailureWord(absl::StatusCode code, bool delivers) {
  switch (code) {
    case absl::StatusCode::kCancelled:
      return kCancelled;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kUnimplemented:
      return kInvalid;
    // Of the world, and, where nothing is delivered, of a limit of what was asked for.
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
      return delivers ? kDestination : kInvalid;
    case absl::StatusCode::kNotFound:
      return delivers ? kDestination : kNotFound;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kDeadlineExceeded:
      return delivers ? kDestination : kStore;
    default:
      return kStore;
  }
}

}  // namespace

AggregatorMetrics::AggregatorMetrics(prometheus::Registry& registry)
    : agents_connected(
          MakeGauge(registry, "neurontrace_aggregator_agents_connected", "Agents connected")),
      workers(MakeGauge(registry, "neurontrace_aggregator_workers", "Workers of connected agents")),
      captures_running(MakeGauge(registry, "neurontrace_aggregator_captures_running",
                                 "Captures arming, recording or stopping")),
      captures_stored(
          MakeGauge(registry, "neurontrace_aggregator_captures_stored", "Captures in the store")),
      store_bytes(MakeGauge(registry, "neurontrace_aggregator_store_bytes", "Bytes of the store")),
      chunks_damaged(
          MakeGauge(registry, "neurontrace_aggregator_store_chunks_damaged",
                    "Chunks found damaged on disk since the start and counted as losses")),
      streams_live(MakeGauge(registry, "neurontrace_aggregator_streams_live",
                             "Streams of running captures that have started and not ended")),
      exports(MakeCounter(registry, "neurontrace_aggregator_exports_total", "Exports started")),
      exports_refused(MakeCounter(registry, "neurontrace_aggregator_exports_refused_total",
                                  "Exports refused because too many were running")),
      exports_unread(MakeCounter(registry, "neurontrace_aggregator_exports_stalled_total",
                                 "Exports cancelled because the client stopped reading")),
      exports_running(
          MakeGauge(registry, "neurontrace_aggregator_exports_running", "Exports in progress")),
      watches_refused(MakeCounter(registry, "neurontrace_aggregator_watches_refused_total",
                                  "Watches of captures refused because too many were open")),
      watches_unread(
          MakeCounter(registry, "neurontrace_aggregator_watches_stalled_total",
                      "Watches of captures cancelled because the client stopped reading")),
      audit_failures(MakeCounter(registry, "neurontrace_aggregator_audit_failures_total",
                                 "Audit log lines that could not be written")),
      secret_files_open(
          MakeGauge(registry, "neurontrace_aggregator_secret_files_open",
                    "Private key files that are readable for every user of the machine")),
      handshakes_failed(
          MakeCounter(registry, "neurontrace_aggregator_handshakes_failed_total",
                      "Failed TLS handshakes, because of untrusted certificates or plain text")),
      connections_refused_descriptors(RefusedConnections(registry, "descriptors")),
      connections_refused_address(RefusedConnections(registry, "address")),
      captures_begun(MakeCounter(registry, "neurontrace_aggregator_captures_begun_total",
                                 "Captures that started recording")),
      captures_not_begun(
          MakeCounter(registry, "neurontrace_aggregator_captures_not_begun_total",
                      "Captures that did not start because too few workers could join")),
      arm_seconds(Seconds(registry, "neurontrace_aggregator_arm_seconds",
                          "Time from the command to the decision whether a capture starts")),
      begin_lead_seconds(Seconds(registry, "neurontrace_aggregator_begin_lead_seconds",
                                 "Time from that decision to the start of the capture")),
      canary_age_{MakeGaugeFamily(
          registry, "neurontrace_aggregator_canary_age_seconds",
          "Time since the last stored canary was sent, the maximum over live streams")},
      certificate_expiry_{
          MakeGaugeFamily(registry, "neurontrace_aggregator_certificate_expiry_seconds",
                          "Expiry time of the aggregator's certificate, in seconds since 1970")},
      authority_expiry_{MakeGaugeFamily(
          registry, "neurontrace_aggregator_authority_expiry_seconds",
          "Earliest expiry time of its certificate authorities, in seconds since 1970")},
      access_file_good_{MakeGaugeFamily(
          registry, "neurontrace_aggregator_access_file_valid",
          "0 while the --access file is invalid and the previous rules are in effect")},
      workers_refused_(MakeCounterFamily(registry, "neurontrace_aggregator_workers_refused_total",
                                         "Selected workers that could not take part, by reason")) {}

void AggregatorMetrics::OnCaptureArmed(const ArmingOutcome& outcome) {
  (outcome.begun ? captures_begun : captures_not_begun).Increment();
  if (!outcome.begun) return;
  arm_seconds.Observe(static_cast<double>(outcome.arm_ns) * 1e-9);
  begin_lead_seconds.Observe(static_cast<double>(outcome.lead_ns) * 1e-9);
}

void AggregatorMetrics::OnWorkersRefused(CaptureObstacle obstacle, uint32_t workers) {
  workers_refused_.Add({{"obstacle", std::string(WordsOf(obstacle))}})
      .Increment(static_cast<double>(workers));
}

void AggregatorMetrics::SetCanaryAge(std::optional<uint64_t> age_ns) { canary_age_.SetNs(age_ns); }

void AggregatorMetrics::SetSecurityEnds(const SecurityEnds& ends) {
  certificate_expiry_.Set(ends.certificate);
  authority_expiry_.Set(ends.authority);
  secret_files_open.Set(static_cast<double>(ends.open_secrets));
}

void AggregatorMetrics::SetAccessFileGood(bool is_good) { access_file_good_.Set(is_good); }

CaptureMetrics::CaptureMetrics(prometheus::Registry& registry)
    : ended_(MakeCounterFamily(registry, "neurontrace_aggregator_captures_ended_total",
                               "Captures that ended, by result")),
      refused_(MakeCounterFamily(registry, "neurontrace_aggregator_captures_refused_total",
                                 "Commands to start a capture that were refused, by reason")) {
  // All of them from the start, so that the first is seen as an increase.
  for (const CaptureState state : kOutcomes) {
    ended_.Add({{"outcome", std::string(OutcomeWord(state))}});
  }
  for (const absl::StatusCode code : kRefusals) {
    refused_.Add({{"reason", std::string(RefusalWord(code))}});
  }
}

void CaptureMetrics::CountEnded(CaptureState state) {
  ended_.Add({{"outcome", std::string(OutcomeWord(state))}}).Increment();
}

void CaptureMetrics::CountAnswer(const absl::Status& status) {
  if (status.ok()) return;
  refused_.Add({{"reason", std::string(RefusalWord(status.code()))}}).Increment();
}

ClockBoundMetrics::ClockBoundMetrics(prometheus::Registry& registry)
    : bounds_{MakeGaugeFamily(registry, "neurontrace_aggregator_clock_bound_seconds",
                              "Error bound of an instance's clock relative to the reference"),
              "instance_id",
              {}},
      left_out_(MakeGauge(registry, "neurontrace_aggregator_clock_bounds_left_out",
                          "Instances whose error bound is omitted because there are too many")) {}

void ClockBoundMetrics::Publish(const std::map<std::string, uint64_t>& bounds) {
  const std::map<std::string, uint64_t> shown = WidestOf(bounds);
  left_out_.Set(static_cast<double>(bounds.size() - shown.size()));
  bounds_.Set(shown, 1e-9);
}

ExportMetrics::ExportMetrics(prometheus::Registry& registry)
    : seconds_(MakeHistogram(registry, "neurontrace_aggregator_export_seconds",
                             "Duration of exports, including failed ones",
                             {0.1, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600})),
      bytes_(MakeCounterFamily(registry, "neurontrace_aggregator_export_bytes_total",
                               "Bytes written by exports, by format")),
      failed_(MakeCounterFamily(registry, "neurontrace_aggregator_exports_failed_total",
                                "Exports that failed, by reason")) {
  // All of them from the start, so that the first is seen as an increase.
  for (const char* const reason : {kCancelled, kInvalid, kNotFound, kDestination, kStore}) {
    failed_.Add({{"reason", reason}});
  }
  for (const ExportTraits& traits : AllExportTraits()) BytesOf(std::string(traits.name()));
  BytesOf(kSeveral);
}

prometheus::Counter& ExportMetrics::BytesOf(const std::string& format) {
  return bytes_.Add({{"format", format}});
}

void ExportMetrics::CountFailed(const absl::Status& status, bool delivers) {
  failed_.Add({{"reason", FailureWord(status.code(), delivers)}}).Increment();
}

ExportMetrics::Meter::Meter(ExportMetrics& metrics, const Clock& clock,
                            const v1::ExportRequest& request)
    : metrics_(metrics),
      clock_(clock),
      begun_ns_(clock.MonotonicNs()),
      bytes_(metrics.BytesOf(FormatWord(request))) {}

ExportMetrics::Meter::~Meter() {
  metrics_.seconds_.Observe(static_cast<double>(clock_.MonotonicNs() - begun_ns_) * 1e-9);
}

void ExportMetrics::Meter::Look(const v1::ExportReply& reply) {
  if (!reply.has_progress() && !reply.has_done()) return;
  const uint64_t now =
      reply.has_done() ? reply.done().total().bytes_written() : reply.progress().bytes_written();
  if (now <= written_) return;
  bytes_.Increment(static_cast<double>(now - written_));
  written_ = now;
}

StoreMetrics::StoreMetrics(prometheus::Registry& registry, Store& store,
                           const CaptureQuotas& quotas)
    : store_(store),
      events_lost_(MakeCounterFamily(
          registry, "neurontrace_aggregator_events_lost_total",
          "Lost events reported by stored chunks or the store, by place and reason")),
      memtable_bytes_(MakeGauge(registry, "neurontrace_aggregator_store_memtable_bytes",
                                "Bytes of RocksDB's write buffers")),
      blob_garbage_bytes_(MakeGauge(registry, "neurontrace_aggregator_store_blob_garbage_bytes",
                                    "Bytes of unreferenced data in blob files")),
      compaction_pending_bytes_(
          MakeGauge(registry, "neurontrace_aggregator_store_compaction_pending_bytes",
                    "Bytes that compaction still has to rewrite, as estimated by RocksDB")),
      write_stalled_(MakeGauge(registry, "neurontrace_aggregator_store_write_stalled",
                               "1 while RocksDB slows writers down or stops them")),
      background_errors_(MakeCounter(registry,
                                     "neurontrace_aggregator_store_background_errors_total",
                                     "Flushes and compactions of RocksDB that failed")),
      artifact_store_bytes_(MakeGauge(registry, "neurontrace_aggregator_artifact_store_bytes",
                                      "Bytes of stored artifacts")),
      wal_bytes_(MakeGauge(registry, "neurontrace_aggregator_store_wal_bytes",
                           "Bytes of the files of RocksDB's write-ahead log")),
      quota_bytes_(MakeGaugeFamily(registry, "neurontrace_aggregator_quota_bytes",
                                   "Quota in bytes; 0: limited only by disk space")),
      disk_free_{MakeGaugeFamily(registry, "neurontrace_aggregator_disk_free_bytes",
                                 "Free bytes of the store's disk that the aggregator may use")} {
  SetQuotas(quotas);
  PublishLosses();
}

void StoreMetrics::SetQuotas(const CaptureQuotas& quotas) {
  quota_bytes_.Add({{"quota", "capture"}}).Set(static_cast<double>(quotas.capture_bytes));
  quota_bytes_.Add({{"quota", "job"}}).Set(static_cast<double>(quotas.job_bytes));
  quota_bytes_.Add({{"quota", "store"}}).Set(static_cast<double>(quotas.store_bytes));
}

void StoreMetrics::Publish() {
  PublishLosses();
  const DatabaseState state = store_.database_state();
  memtable_bytes_.Set(static_cast<double>(state.memtable_bytes));
  blob_garbage_bytes_.Set(static_cast<double>(state.blob_garbage_bytes));
  compaction_pending_bytes_.Set(static_cast<double>(state.compaction_pending_bytes));
  write_stalled_.Set(state.write_stalled ? 1 : 0);
  RaiseCounter(background_errors_, static_cast<double>(state.background_errors));
  artifact_store_bytes_.Set(static_cast<double>(store_.artifacts().files().bytes()));
}

void StoreMetrics::PublishLosses() {
  RaiseLosses(events_lost_, store_.chunks().losses(), LossPlace::kRetention);
}

void StoreMetrics::LookAtDisk() {
  if (const auto bytes = store_.wal_bytes(); bytes.ok()) {
    wal_bytes_.Set(static_cast<double>(*bytes));
  }
  const auto free_bytes = store_.free_bytes();
  disk_free_.Set(free_bytes.ok() ? std::optional(static_cast<double>(*free_bytes)) : std::nullopt);
}

}  // namespace neurontrace
