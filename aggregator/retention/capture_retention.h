// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/align/core/clock_map.h"
#include "aggregator/retention/export_leases.h"
#include "aggregator/store/chunk_trim.h"
#include "aggregator/store/store.h"
#include "aggregator/store/stream_record.h"
#include "lib/base/clock.h"
#include "lib/trace/capture_record.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// Metrics of retention; docs/operator/metrics.md describes them. The registry owns them.
// Any thread.
struct RetentionMetrics {
  explicit RetentionMetrics(prometheus::Registry& registry);

  prometheus::Counter& events_expired;
  prometheus::Counter& bytes_expired;
  prometheus::Counter& trims;
  prometheus::Counter& trim_seconds;
  prometheus::Counter& captures_deleted;
  prometheus::Counter& errors;
  prometheus::Gauge& step_seconds_max;
  prometheus::Gauge& streams_by_receipt;
};

// Now, by the clocks that stamps are compared with.
struct RetentionTime {
  uint64_t reference_ns = 0;  // what clock maps lead to
  uint64_t realtime_ns = 0;   // of the aggregator: for stamps of hosts without a map
  uint64_t monotonic_ns = 0;  // for when chunks came
};

// How old the chunks of one stream are: by the stamps of their events as long as these make sense,
// else (and in a stream with a time of its own) by when they came, which is noted from pass to
// pass. Of what came before the first pass of this process it is known only that it came by then.
// One thread at a time.
class StreamAge {
 public:
  // Of these, more are thinned out: so many moments of receipt are remembered of a stream.
  static constexpr size_t kMarksMax = 64;
  static constexpr uint64_t kMarkSpacingNs = 1'000'000'000;
  // Stamps that lie so far in the future make no sense. Nor do those that lie so far in the past,
  // or half of what is kept, as they come, of a host whose clock nobody knows.
  static constexpr uint64_t kAheadMaxNs = 10'000'000'000;
  static constexpr uint64_t kBehindMaxNs = 60'000'000'000;

  explicit StreamAge(uint64_t retention_ns = 0);  // 0: by bytes alone

  // What is stored of the stream now. `map` leads from its host's REALTIME to the reference, and is
  // the identity where nothing is known of that.
  void Note(const StreamRecord& record, const ClockMap& map, const RetentionTime& now);

  // What is older than `age_ns`. Whatever the stamps say, what came twice as long ago goes, too.
  TrimRequest OlderThan(uint64_t age_ns) const;
  // How old the oldest event is; 0 without one.
  uint64_t OldestNs() const;
  bool is_by_receipt() const { return by_receipt_; }

 private:
  struct Mark {
    uint64_t monotonic_ns = 0;
    uint64_t next_sequence = 0;
  };

  uint64_t ReceivedBefore(uint64_t age_ns) const;
  uint64_t StampAgo(uint64_t age_ns) const;

  uint64_t behind_max_ns_;
  uint64_t mark_spacing_ns_;
  std::deque<Mark> marks_;  // oldest first
  const ClockMap* map_ = nullptr;
  RetentionTime now_;
  uint64_t first_sequence_ = 0;
  uint64_t next_sequence_ = 0;
  uint64_t first_timestamp_ns_ = 0;
  uint64_t events_ = 0;
  bool by_receipt_ = false;
};

// What retention has deleted.
struct Expired {
  CaptureId capture;
  std::string job;
  bool is_whole = false;  // the capture; else the oldest of one that continues
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
    // IS told about every deletion: of a capture that continues in sums, now and then and at its
    // end.
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
  // A continuous capture that continues.
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
  void LogExpiredTotals(const CaptureRecord& record, Running& running) const;
  RetentionTime Now() const;

  const Deps deps_;
  std::map<CaptureId, Running> running_;
  std::map<CaptureId, uint64_t> delete_at_;  // realtime; UINT64_MAX: nothing is to be done ever
  ClockMaps maps_;
  uint64_t maps_monotonic_ns_ = 0;  // when they were read; 0: never
};

}  // namespace neurontrace
