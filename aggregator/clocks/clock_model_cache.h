// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/clocks/clock_fit_record.h"
#include "aggregator/clocks/order_classes.h"
#include "aggregator/store/store.h"
#include "aggregator/store/stream_record.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Ends the window of a capture's clocks with its last event and sets their bounds for that window.
// After the last event nobody needs times, and until later evidence arrives the clocks are known
// worst there. Changes nothing if no event has a known clock.
void EndWithEvents(const std::vector<StreamRecord>& streams, CaptureClocks& clocks);

// Counts fits and stored versions, as Prometheus metrics (docs/operator/metrics.md). The registry
// owns them. Any thread.
struct ClockModelCacheMetrics {
  explicit ClockModelCacheMetrics(prometheus::Registry& registry);

  prometheus::Counter& fits;  // of running and ended captures
  prometheus::Counter& fit_seconds;
  prometheus::Counter& versions_stored;
  prometheus::Counter& versions_not_stored;
};

// The clocks of captures, and the current ones, derived from stored evidence.
//
// While a capture runs, its clocks are fitted for each question; that is version 0. After its end
// they are fitted once and stored, so that everybody gets the same. When all helpful evidence has
// had time to arrive they are fitted again, and that version is final. It is only replaced if still
// later evidence arrives, or by a build that fits differently (docs/decisions/0015). The same
// evidence gives the same clocks, bit for bit.
//
// Any thread; a fit takes about 10 us per second of capture and machine, on the caller's thread.
// One caller at a time works on a capture; others wait for its result.
class ClockModelCache {
 public:
  // Evidence from this long before and after a capture is used for its clocks.
  static constexpr uint64_t kMarginNs = 30'000'000'000;
  // How much later the last of it is stored at the latest: agents send theirs every two seconds.
  static constexpr uint64_t kArrivalNs = 5'000'000'000;
  // How much evidence the current clocks are derived from.
  static constexpr uint64_t kNowNs = 120'000'000'000;

  // All but `order` must outlive this.
  ClockModelCache(Store& store, const Clock& clock, ClockModelCacheMetrics& metrics,
                  OrderClasses order = {})
      : store_(store), clock_(clock), metrics_(metrics), order_(order) {}
  ClockModelCache(const ClockModelCache&) = delete;
  ClockModelCache& operator=(const ClockModelCache&) = delete;

  // Returns when the models of an ended capture can become final, by the aggregator's REALTIME.
  // Requires an ended capture.
  static uint64_t FinalAtNs(const CaptureRecord& record);

  // Returns the clocks of the machines that have streams in a capture. Fails with the errors of
  // reading streams and evidence, and with CANCELLED after Close. Models that cannot be stored are
  // returned nevertheless, as version 0.
  absl::StatusOr<CaptureClocks> ForCapture(const CaptureRecord& record);
  // Returns the clocks for an export of a part of a running capture, fitted from the evidence and
  // events around the window. Stores nothing.
  absl::StatusOr<CaptureClocks> ForWindow(const CaptureRecord& record,
                                          const RealtimeWindow& window) const;
  // Returns the clocks without devices and checks of order, unless a stored version has them: reads
  // no chunk and stores nothing. For callers that only display bounds.
  absl::StatusOr<CaptureClocks> HostsOfCapture(const CaptureRecord& record) const;
  // Makes sure that a final version is stored if it is time. Returns false if there is none yet.
  // Fails as ForCapture does. Does nothing and returns false for a running capture.
  absl::StatusOr<bool> Finalize(const CaptureRecord& record);
  // Returns the current clock of every machine with evidence of the last kNowNs. Reads only
  // evidence; devices and order checks are not included. Fails with the error of the store, and
  // with CANCELLED after Close.
  absl::StatusOr<CaptureClocks> Now(uint64_t now_realtime_ns) const;

  // Makes fits that are running, and later ones, end soon with CANCELLED. Any thread.
  void Close() { is_closed_ = true; }
  bool is_closed() const { return is_closed_; }

 private:
  // A stored version with the record of its fit.
  struct Stored {
    ClockFitRecord fit;
    ClockModelVersion models;
  };
  // While it exists no other caller works on this capture. Held by ForCapture, because
  // ClockModelStore allows one writer for each capture.
  class Turn;

  // Describes what a fit would use now, without fitting.
  absl::StatusOr<ClockFitRecord> Survey(const CaptureRecord& record) const;
  // Uses the given window; the function above uses that of the capture, with its margins.
  absl::StatusOr<ClockFitRecord> Survey(std::span<const StreamRecord> streams,
                                        const RealtimeWindow& window) const;
  // Fits hosts only, completes the watermarks of `fit`, and checks for Close between two machines.
  // The result has no device clocks.
  absl::StatusOr<CaptureClocks> Fit(ClockFitRecord& fit,
                                    const std::optional<ReferenceWindow>& window) const;
  // FitCapture adds device clocks and order checks, which needs every chunk; FitHosts does not.
  absl::StatusOr<CaptureClocks> FitHosts(const CaptureRecord& record, ClockFitRecord& fit) const;
  absl::StatusOr<CaptureClocks> FitCapture(const CaptureRecord& record, ClockFitRecord& fit) const;
  // Returns the stored version or fits and stores one. Requires a Turn of the capture.
  absl::StatusOr<CaptureClocks> ForEnded(const CaptureRecord& record);
  // Returns a stored version if it is still the one to use; nullopt if a new fit is due.
  absl::StatusOr<std::optional<CaptureClocks>> Held(const CaptureRecord& record,
                                                    const Stored& stored,
                                                    const ClockFitRecord& now) const;
  // Returns nullopt if nothing is stored. An unreadable header counts as no fit, so that a new one
  // is due.
  absl::StatusOr<std::optional<Stored>> ReadStored(const CaptureId& id) const;
  // Stores a version unless the capture was deleted; a failure is only logged and counted.
  void StoreAs(const CaptureId& id, const ClockFitRecord& fit, ClockModelVersion models,
               CaptureClocks& clocks);
  void LogNotStored(const CaptureId& id, const absl::Status& status) const;

  Store& store_;
  const Clock& clock_;
  ClockModelCacheMetrics& metrics_;
  const OrderClasses order_;
  std::atomic<bool> is_closed_ = false;
  Mutex mutex_;
  CondVar turn_ended_;
  std::set<CaptureId> busy_ NT_GUARDED_BY(mutex_);  // captures that somebody works on
};

}  // namespace neurontrace
