// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "aggregator/clocks/clock_service.h"
#include "aggregator/operator/capture_explainer.h"
#include "aggregator/store/store.h"
#include "aggregator/view/capture_layout.h"
#include "lib/base/clock.h"

namespace neurontrace {

// Answers `neurontrace why` about stored captures, running ones included: reads the events that the
// insight rule needs of a snapshot of the store, however many there are, and judges them. Reads on
// the calling thread and two more. Keeps nothing. Any thread.
class CaptureInsight final : public CaptureExplainer {
 public:
  // All of them must outlive this.
  struct Deps {
    const Store& store;
    ClockService& clocks;
    const Clock& clock;
  };
  explicit CaptureInsight(const Deps& deps) : deps_(deps) {}

  absl::StatusOr<v1::InsightReport> Explain(const CaptureRecord& record,
                                            const v1::ExplainRequest& request,
                                            ExplainObserver* observer) override;

 private:
  // [from_ns, to_ns) of reference time.
  struct Window {
    uint64_t from_ns = 0;
    uint64_t to_ns = UINT64_MAX;
  };
  // Fails with INVALID_ARGUMENT if it is empty.
  absl::StatusOr<Window> WindowOf(const v1::ExplainRequest& request,
                                  const CaptureLayout& layout) const;

  const Deps deps_;
};

}  // namespace neurontrace
