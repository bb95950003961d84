// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "aggregator/align/capture_clocks.h"
#include "aggregator/store/store.h"
#include "trace/capture_record.h"

namespace neurontrace {

// The clocks of captures, and of now, out of the evidence that is stored: fitted when asked for, so
// that better evidence, or a better fit, serves old captures too. The same evidence gives the same
// clocks, to the bit. Any thread; a call takes some 10 us for each second and machine.
class ClockBook {
 public:
  // Evidence of so long before and after a capture helps to know its clocks.
  static constexpr uint64_t kMarginNs = 30'000'000'000;
  // As long is what is said of now.
  static constexpr uint64_t kNowNs = 120'000'000'000;

  explicit ClockBook(const Store& store) : store_(store) {}

  // Of the machines that have streams in a capture. Errors of the store.
  absl::StatusOr<CaptureClocks> OfCapture(const CaptureRecord& record) const;
  // Of every machine that has told anything in the last minutes, as they are now.
  absl::StatusOr<CaptureClocks> Now(uint64_t now_realtime_ns) const;

 private:
  absl::StatusOr<CaptureClocks> Fit(const std::vector<HostBoot>& hosts,
                                    const RealtimeWindow& evidence_of,
                                    const std::optional<ReferenceWindow>& window) const;

  const Store& store_;
};

}  // namespace neurontrace
