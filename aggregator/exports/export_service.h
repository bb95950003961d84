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
#include "aggregator/storage/storage.h"
#include "aggregator/store/store.h"
#include "aggregator/store/store_incarnation.h"
#include "lib/base/clock.h"
#include "lib/base/random.h"
#include "lib/trace/capture_record.h"

namespace neurontrace {

// Makes all exports of an aggregator, those that operators request and those of standing rules.
// Owns what they share: the export roots, the leases that keep captures from being deleted
// meanwhile, the limit of concurrent calls, and the metrics. Complete after Open. Methods may be
// called on any thread unless they say otherwise; an export runs on the thread of its caller.
class ExportService final : public CaptureExporter {
 public:
  struct Options {
    // Where exports may be written; empty: nowhere.
    std::vector<ExportRoot> roots;
    S3Service s3;                             // for roots in buckets
    std::vector<std::string> standing_rules;  // see docs/operator/export_to_volumes.md
    // The directory of the open store. Has the file with the state of standing exports.
    std::string store_directory;
    // False without TLS: all callers count as one, which may then use all places.
    bool callers_have_names = true;
  };
  // All must outlive the service.
  struct Deps {
    Store& store;
    const Storage& storage;  // of that store
    ClockService& clocks;
    AuditLog& audit;
    prometheus::Registry& registry;
    const Clock& clock;
    // For claims on destinations, which other machines compare with their own clocks.
    const Clock& machine_clock;
    Random& random;
  };

  // Fails if a standing rule cannot be followed, see StandingExports::ReadRules. Standing exports
  // start with standing().Begin().
  static absl::StatusOr<std::unique_ptr<ExportService>> Open(const Options& options,
                                                             const Deps& deps);

  // Exports on the calling thread and blocks until the end. Fails as DeliverStoredCapture or
  // ExportStoredCapture does, and with NOT_FOUND if the capture is being deleted.
  absl::Status ExportCapture(const CaptureRecord& record, const v1::ExportRequest& request,
                             const ExportWriter& write) override;

  // Returns the exports that rules ask for; the owner of this object begins and ends them.
  StandingExports& standing() { return standing_; }
  // Leases are taken by exports, and by whoever deletes a capture.
  ExportLeases& leases() { return leases_; }
  // Limits the exports that operators are receiving.
  StreamingCallLimiter& calls() { return calls_; }

 private:
  ExportService(const Options& options, const Deps& deps, std::vector<StandingRule> rules);
  // Returns whether the export could have reached its destination as far as the request is
  // concerned.
  bool CanReachDestination(const CaptureRecord& record, const v1::ExportRequest& request);
  // Exports a capture that a lease keeps from being deleted.
  absl::Status ExportLeased(const CaptureRecord& record, const v1::ExportRequest& request,
                            const ExportWriter& write);
  // Exports as replies, without the bytes that the caller already has.
  absl::Status SendReplies(const CaptureRecord& record, const v1::ExportRequest& resolved,
                           const CaptureClocks& clocks, const ExportWriter& write) const;
  // Turns a window given as distances before now into two moments. Waits, up to a few seconds, for
  // events that are on their way into it, and appends to `notes` what is missing.
  absl::StatusOr<v1::ExportRequest> ResolveWindow(const CaptureRecord& record,
                                                  const v1::ExportRequest& request,
                                                  std::vector<std::string>& notes);
  // Returns why the store takes no data at present; empty: it does.
  std::string StoreProblem() const;
  // Returns the clocks of the capture or, while it is recorded, those of the window alone.
  absl::StatusOr<CaptureClocks> ClocksFor(const CaptureRecord& record,
                                          const v1::ExportRequest& resolved);

  const Deps deps_;
  const ExportRoots roots_;
  // Identifies this process in claims on destinations, so that the next process knows that they are
  // abandoned.
  const StoreIncarnation incarnation_;
  ExportMetrics metrics_;
  ExportLeases leases_;
  // Refuses exports beyond the limits, and cancels those whose client stopped reading.
  StreamingCallLimiter calls_;
  // Last, because its thread uses the members above.
  StandingExports standing_;
};

}  // namespace neurontrace
