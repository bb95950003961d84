// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/clock_map.h"
#include "aggregator/retention/export_leases.h"
#include "aggregator/retention/retention_metrics.h"
#include "aggregator/retention/stream_age.h"
#include "aggregator/store/store.h"
#include "base/clock.h"
#include "trace/capture_record.h"
#include "trace/ids.h"

namespace neurontrace {

// What retention has deleted.
struct Expired {
  CaptureId capture;
  std::string job;
  bool is_whole = false;  // the capture; else the oldest of one that goes on
  uint64_t events = 0;    // of these
  uint64_t chunks = 0;    // of a whole one
  uint64_t bytes = 0;
};

// What makes captures no older and no larger than they are to be: deletes the oldest chunks of
// continuous ones that go on, and whole captures that have ended, when their spec says so. Has no
// thread of its own; one at a time.
class CaptureRetention {
 public:
  // A capture's oldest go in the eighth part of its retention, within these.
  static constexpr uint64_t kPassIntervalMinNs = 1'000'000'000;
  static constexpr uint64_t kPassIntervalMaxNs = 15'000'000'000;
  // The clocks of hosts are asked for again after so long.
  static constexpr uint64_t kMapsMaxAgeNs = 60'000'000'000;

  // All outlive this.
  struct Deps {
    Store& store;
    const Clock& clock;
    ExportLeases& leases;
    RetentionMetrics& metrics;
    // Somebody set the clock forward after a stamp: by how much its captures expire later. May be
    // null: by nothing.
    std::function<uint64_t(uint64_t stamp_ns)> set_forward_since;
    // Now, of the timescale that clock maps lead to.
    std::function<uint64_t()> reference_now_ns;
    // Of the hosts that are there, from their REALTIME.
    std::function<absl::StatusOr<ClockMaps>()> clock_maps;
    // Nobody else is to do anything with this ended capture any more; false: somebody will.
    std::function<bool(const CaptureId&)> let_go;
    // Called after a step that took so long, that others have their turn.
    std::function<void(uint64_t step_ns)> pause;
    // True: what is under way ends soon, and the rest waits for the next start.
    std::function<bool()> is_ending;
    // Is told of every deletion: of a capture that goes on in sums, now and then and at its end.
    std::function<void(const Expired&)> on_expired;
  };
  explicit CaptureRetention(Deps deps) : deps_(std::move(deps)) {}
  ~CaptureRetention();  // says what has not been said yet
  CaptureRetention(const CaptureRetention&) = delete;
  CaptureRetention& operator=(const CaptureRetention&) = delete;

  // Looks at everything that is due. Call it every second. The first error; whatever it left is
  // looked at again.
  absl::Status Run();

 private:
  // A continuous capture that goes on.
  struct Running {
    uint64_t due_monotonic_ns = 0;
    std::map<uint32_t, StreamAge> ages;
    uint64_t events_expired = 0;  // since the last line in the log
    uint64_t bytes_expired = 0;
    uint64_t said_monotonic_ns = 0;
    size_t by_receipt = 0;  // of its streams
  };
  class Pass;

  absl::Status Look(const CaptureId& id);
  absl::Status TrimCapture(const CaptureRecord& record, Running& running);
  absl::Status DeleteCapture(const CaptureRecord& record);
  absl::Status RefreshMaps();
  void SaySums(const CaptureRecord& record, Running& running) const;
  RetentionTime Now() const;

  const Deps deps_;
  std::map<CaptureId, Running> running_;
  std::map<CaptureId, uint64_t> delete_at_;  // realtime; UINT64_MAX: nothing is to be done ever
  ClockMaps maps_;
  uint64_t maps_monotonic_ns_ = 0;  // when they were read; 0: never
};

}  // namespace neurontrace
