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

// Ends the window of a capture's clocks with the last of its events, and has the clocks say the
// bounds of that: what comes after, until everybody has told that all is delivered, is nobody's
// concern, and known worst as long as nothing later was measured. Without an event whose clock is
// known everything stays as it is.
void EndWithEvents(const std::vector<StreamRecord>& streams, CaptureClocks& clocks);

// The outcome of the models of captures' clocks; docs/operator/metrics.md describes them. The
// registry owns them. Any thread.
struct ClockModelCacheMetrics {
  explicit ClockModelCacheMetrics(prometheus::Registry& registry);

  prometheus::Counter& fits;  // of captures, running and ended
  prometheus::Counter& fit_seconds;
  prometheus::Counter& versions_stored;
  prometheus::Counter& versions_not_stored;
};

// The clocks of captures, and of now, out of the evidence that is stored.
//
// While a capture runs its clocks are fitted each time, and that is version 0. After it they are
// fitted once and stored: whoever asks again gets the same. When all evidence that helps has had
// the time to arrive, they are fitted once more, and that version is final: it stays until evidence
// comes that is later still, or a build that fits otherwise (docs/decisions/0015). The same
// evidence gives the same clocks, to the bit.
//
// Any thread; a fit takes some 10 us for each second and machine. Of one capture one caller works
// at a time, the others wait and get what it made.
class ClockModelCache {
 public:
  // Evidence of so long before and after a capture helps to know its clocks.
  static constexpr uint64_t kMarginNs = 30'000'000'000;
  // So much later the last of it is stored: agents send theirs every two seconds.
  static constexpr uint64_t kArrivalNs = 5'000'000'000;
  // As long is what is said of now.
  static constexpr uint64_t kNowNs = 120'000'000'000;

  // All but `order` outlive this.
  ClockModelCache(Store& store, const Clock& clock, ClockModelCacheMetrics& metrics,
                  OrderClasses order = {})
      : store_(store), clock_(clock), metrics_(metrics), order_(order) {}
  ClockModelCache(const ClockModelCache&) = delete;
  ClockModelCache& operator=(const ClockModelCache&) = delete;

  // From when on the models of a capture that has ended can be final, by the aggregator's REALTIME.
  static uint64_t FinalAtNs(const CaptureRecord& record);

  // Of the machines that have streams in a capture. Errors of reading streams and evidence;
  // CANCELLED after Close. Models that cannot be stored are given all the same, as version 0.
  absl::StatusOr<CaptureClocks> OfCapture(const CaptureRecord& record);
  // Of one that continues, for an export of a part of it alone: fitted out of the evidence and the
  // events around the window. Stores nothing.
  absl::StatusOr<CaptureClocks> OfWindow(const CaptureRecord& record,
                                         const RealtimeWindow& window) const;
  // The same without what events report devices and of order, unless a stored version has it:
  // reads none of them, and stores nothing. For who only looks.
  absl::StatusOr<CaptureClocks> HostsOfCapture(const CaptureRecord& record) const;
  // Sees to it that a final version is stored, if it is time. False: there is none yet.
  absl::StatusOr<bool> Finalize(const CaptureRecord& record);
  // Of every machine that has told anything in the last minutes, as they are now.
  absl::StatusOr<CaptureClocks> Now(uint64_t now_realtime_ns) const;

  // What is being fitted ends soon with CANCELLED, and so does what comes after.
  void Close() { is_closed_ = true; }
  bool is_closed() const { return is_closed_; }

 private:
  // A stored version, with what it was fitted out of.
  struct Stored {
    ClockFitRecord fit;
    ClockModelVersion models;
  };
  // While it lives no other caller works on this capture.
  class Turn;

  absl::StatusOr<ClockFitRecord> Survey(const CaptureRecord& record) const;
  absl::StatusOr<ClockFitRecord> Survey(std::span<const StreamRecord> streams,
                                        const RealtimeWindow& window) const;
  absl::StatusOr<CaptureClocks> Fit(ClockFitRecord& fit,
                                    const std::optional<ReferenceWindow>& window) const;
  absl::StatusOr<CaptureClocks> FitHosts(const CaptureRecord& record, ClockFitRecord& fit) const;
  absl::StatusOr<CaptureClocks> FitCapture(const CaptureRecord& record, ClockFitRecord& fit) const;
  absl::StatusOr<CaptureClocks> OfEnded(const CaptureRecord& record);
  // A stored version as it is to be given out; nullopt where a new fit is due.
  absl::StatusOr<std::optional<CaptureClocks>> Held(const CaptureRecord& record,
                                                    const Stored& stored,
                                                    const ClockFitRecord& now) const;
  absl::StatusOr<std::optional<Stored>> ReadStored(const CaptureId& id) const;
  void StoreAs(const CaptureId& id, const ClockFitRecord& fit, ClockModelVersion models,
               CaptureClocks& clocks);
  void TellNotStored(const CaptureId& id, const absl::Status& status) const;

  Store& store_;
  const Clock& clock_;
  ClockModelCacheMetrics& metrics_;
  const OrderClasses order_;
  std::atomic<bool> is_closed_ = false;
  Mutex mutex_;
  CondVar turn_ended_;
  std::set<CaptureId> busy_ NT_GUARDED_BY(mutex_);
};

// Sees to it that every capture that has ended gets the final models of its clocks, also if nobody
// asks for them. One thread at a time.
class ClockFinalizer {
 public:
  // Both outlive this.
  ClockFinalizer(const Store& store, ClockModelCache& book) : store_(store), book_(book) {}

  // Looks at all captures that are not known to be done. The first error; what it left is looked at
  // the next time.
  absl::Status Run();

 private:
  const Store& store_;
  ClockModelCache& book_;
  std::set<CaptureId> done_;
};

}  // namespace neurontrace
