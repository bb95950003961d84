// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/align/core/capture_clocks.h"
#include "aggregator/timeline/timeline_reader.h"
#include "lib/trace/ids.h"

namespace neurontrace {

// A finding and when it was.
struct TimedFinding {
  const ClockFinding* finding = nullptr;
  uint64_t begin_ns = 0;  // reference time
};
struct TimedFindings {
  std::vector<TimedFinding> findings;  // by time
  size_t left_out = 0;
};
// At most `findings_max` of an instance's: breaks first, then by the amount.
TimedFindings FindingsOf(const InstanceClock& clock, size_t findings_max);
std::string_view ToString(ClockFindingKind kind);  // "break", "rejected evidence", …

// What an export says of the clocks of the instances in it. Refers to the clocks.
class ClockReport {
 public:
  // Findings of one instance that a report has; further ones are counted.
  static constexpr size_t kFindingsMax = 64;

  // `clocks` may be nullptr: nothing is known of any. `is_raw`: they are not made use of.
  ClockReport(const CaptureClocks* clocks, bool is_raw,
              std::span<const StreamIdentity* const> streams);
  static ClockReport Of(const CaptureClocks* clocks, bool is_raw,
                        std::span<const TimelineStream> streams);

  // Whether times went through clock maps; otherwise they are as they were recorded.
  bool is_aligned() const { return !is_raw_ && !known_.empty(); }
  std::string_view timescale() const { return is_aligned() ? "reference" : "recorded"; }
  // Instances in the export with a model, by id, and how many there are in all.
  std::span<const InstanceClock* const> known() const { return known_; }
  size_t instances() const { return instances_; }
  // Of the models, the largest; 0: there is none.
  uint32_t algorithm_version() const;
  // Of the capture's models: see CaptureClocks.
  uint32_t version() const { return version_; }
  bool is_final() const { return is_final_; }
  // Whether the order of what instances did together is as it can have been.
  std::span<const OrderCheck> order() const;
  // The largest of the known instances; nullopt: there is none, or one has no bound.
  std::optional<uint64_t> bound_max_ns() const;

  // Streams in the export with times of their own, which no clock of an instance has stamped.
  void SetOwnTimes(size_t streams) { own_times_ = streams; }

  // A sentence for people.
  std::string Words() const;
  // One object for programs; docs/formats/json.md has its keys.
  std::string Json() const;

 private:
  std::string HostWords() const;

  const CaptureClocks* clocks_;
  bool is_raw_ = false;
  uint32_t version_ = 0;
  bool is_final_ = false;
  std::vector<const InstanceClock*> known_;
  std::vector<std::string> unknown_;  // instance ids
  size_t instances_ = 0;
  size_t own_times_ = 0;
};

}  // namespace neurontrace
