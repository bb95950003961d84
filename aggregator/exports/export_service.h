// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/access/audit_log.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/clocks/clock_service.h"
#include "aggregator/deliver/export_roots.h"
#include "aggregator/deliver/s3_client.h"
#include "aggregator/deliver/standing_queue.h"
#include "aggregator/exports/export_metrics.h"
#include "aggregator/exports/standing_exports.h"
#include "aggregator/operator/capture_exporter.h"
#include "aggregator/operator/streaming_call_limiter.h"
#include "aggregator/retention/export_leases.h"
#include "aggregator/store/store.h"
#include "aggregator/store/store_incarnation.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Makes all exports of an aggregator, those that operators ask for and those of standing rules, and
// owns what they share: the export roots, the leases that keep captures from being deleted
// meanwhile, the limit of concurrent calls, and the metrics. Complete after Open. Any thread,
// unless a method says otherwise.
class ExportService final : public CaptureExporter {
 public:
  struct Options {
    std::vector<ExportRoot> roots;            // where exports may be written; empty: nowhere
    S3Service s3;                             // for roots in buckets
    std::vector<std::string> standing_rules;  // see docs/operator/export_to_volumes.md
    std::string store_directory;              // which has the state of standing exports
    bool callers_have_names = true;           // false: all are one caller, as in plain text
  };
  // All outlive it.
  struct Deps {
    Store& store;
    ClockService& clocks;
    AuditLog& audit;
    prometheus::Registry& registry;
    const Clock& clock;
    const Clock& machine_clock;  // for claims on destinations, which other machines look at
    Random& random;
  };

  // Fails if a standing rule cannot be followed, see StandingExports::ReadRules. Standing exports
  // wait for BeginStandingExports.
  static absl::StatusOr<std::unique_ptr<ExportService>> Open(const Options& options,
                                                             const Deps& deps);

  // Fails as DeliverStoredCapture or ExportStoredCapture, and with NOT_FOUND if the capture is
  // being deleted.
  absl::Status ExportCapture(const CaptureRecord& record, const v1::ExportRequest& request,
                             const ExportWriter& write) override;

  StandingExports& standing() { return standing_; }
  // Taken by whoever exports or deletes a capture.
  ExportLeases& leases() { return leases_; }
  // The exports that operators are receiving.
  StreamingCallLimiter& calls() { return calls_; }

 private:
  ExportService(const Options& options, const Deps& deps, std::vector<StandingRule> rules);
  // Returns whether the export could reach its destination, as far as the request is concerned.
  bool CanReachDestination(const CaptureRecord& record, const v1::ExportRequest& request);
  // Exports a capture that a lease keeps from being deleted.
  absl::Status ExportLeased(const CaptureRecord& record, const v1::ExportRequest& request,
                            const ExportWriter& write);
  // Exports as replies, without what the caller already has.
  absl::Status SendReplies(const CaptureRecord& record, const v1::ExportRequest& resolved,
                           const CaptureClocks& clocks, const ExportWriter& write) const;
  // Makes a window before now one of two moments. Waits for the events that are on their way into
  // it, and appends to `notes` what is missing.
  absl::StatusOr<v1::ExportRequest> ResolveWindow(const CaptureRecord& record,
                                                  const v1::ExportRequest& request,
                                                  std::vector<std::string>& notes);
  absl::StatusOr<CaptureClocks> ClocksFor(const CaptureRecord& record,
                                          const v1::ExportRequest& resolved);

  const Deps deps_;
  const ExportRoots roots_;
  const StoreIncarnation incarnation_;
  ExportMetrics metrics_;
  ExportLeases leases_;
  StreamingCallLimiter calls_;
  StandingExports standing_;  // uses this: last
};

}  // namespace neurontrace
