// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// How long exports take, how much they write and why they fail, as Prometheus metrics. The registry
// owns them. Any thread.
class ExportMetrics {
 public:
  explicit ExportMetrics(prometheus::Registry& registry);

  prometheus::Counter& begun;
  prometheus::Counter& refused;  // for want of a place
  prometheus::Counter& unread;   // ended, as nobody read them
  prometheus::Gauge& running;

  // One that ended with this error. `delivers`: to a destination that may be written to, of a
  // capture that there is something of; what the world refuses then is the destination's.
  void CountFailed(const absl::Status& status, bool delivers);

  // One export, from its making to its end; one thread. Both references outlive it.
  class Meter {
   public:
    Meter(ExportMetrics& metrics, const Clock& clock, const v1::ExportRequest& request);
    ~Meter();
    Meter(const Meter&) = delete;
    Meter& operator=(const Meter&) = delete;

    // Each reply of it, in order: progress and the end say how much is written.
    void Look(const v1::ExportReply& reply);

   private:
    ExportMetrics& metrics_;
    const Clock& clock_;
    const uint64_t begun_ns_;
    prometheus::Counter& bytes_;
    uint64_t written_ = 0;
  };

 private:
  prometheus::Counter& BytesOf(const std::string& format);

  prometheus::Histogram& seconds_;
  prometheus::Family<prometheus::Counter>& bytes_;
  prometheus::Family<prometheus::Counter>& failed_;
};

}  // namespace neurontrace
