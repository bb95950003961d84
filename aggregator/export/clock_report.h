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

// A finding about a clock, with its time. Points into the clock's model.
struct TimedFinding {
  const ClockFinding* finding = nullptr;
  uint64_t begin_ns = 0;  // reference time
};
// The findings of one instance that are shown, and how many more exist.
struct TimedFindings {
  std::vector<TimedFinding> findings;  // by time
  size_t left_out = 0;
};
// Returns at most `findings_max` findings of an instance, by time. If there are more, breaks are
// kept first, then those with the largest amounts. A pure function.
TimedFindings FindingsOf(const InstanceClock& clock, size_t findings_max);
// Returns "break", "rejected evidence", "route change" or "inconsistent".
std::string_view ToString(ClockFindingKind kind);

// The description, in an export, of the clocks of the instances in it. Borrows the clocks, which
// must outlive it.
class ClockReport {
 public:
  // Findings of one instance in the JSON; further ones are counted.
  static constexpr size_t kFindingsMax = 64;

  // `clocks` is nullptr if nothing is known of any clock. `is_raw` says that times are exported as
  // they were recorded.
  ClockReport(const CaptureClocks* clocks, bool is_raw,
              std::span<const StreamIdentity* const> streams);
  // Returns the report for streams of a timeline; those with their own time are counted separately.
  static ClockReport Of(const CaptureClocks* clocks, bool is_raw,
                        std::span<const TimelineStream> streams);

  // Returns whether times went through clock maps; otherwise they are as they were recorded.
  bool is_aligned() const { return !is_raw_ && !known_.empty(); }
  std::string_view timescale() const { return is_aligned() ? "reference" : "recorded"; }
  // Return the instances in the export that have a model, by id, and the number of all instances in
  // it.
  std::span<const InstanceClock* const> known() const { return known_; }
  size_t instances() const { return instances_; }
  // Returns the largest version among the models, or 0 if there are none.
  uint32_t algorithm_version() const;
  // Return the version of the capture's models and whether it is final, see CaptureClocks.
  uint32_t version() const { return version_; }
  bool is_final() const { return is_final_; }
  // Returns the checks whether what instances did together is shown in a possible order.
  std::span<const OrderCheck> order() const;
  // Returns the largest bound of the known instances, or nullopt if there are none or one has no
  // bound.
  std::optional<uint64_t> bound_max_ns() const;

  // Sets the number of streams in the export whose times no clock of an instance stamped.
  void SetOwnTimes(size_t streams) { own_times_ = streams; }

  // Returns one or two sentences for people.
  std::string Describe() const;
  // Returns one object for programs; docs/formats/json.md defines its keys.
  std::string Json() const;

 private:
  // Returns the sentence about instances alone, without streams that have their own time.
  std::string DescribeHosts() const;

  // nullptr: nothing is known of any clock.
  const CaptureClocks* clocks_;
  bool is_raw_ = false;
  uint32_t version_ = 0;
  bool is_final_ = false;
  // Of the instances in the export, by id; points into clocks_.
  std::vector<const InstanceClock*> known_;
  std::vector<std::string> unknown_;  // instance ids
  // Boots of instances, known and unknown: a rebooted instance counts twice.
  size_t instances_ = 0;
  // Streams whose times no clock of an instance stamped.
  size_t own_times_ = 0;
};

}  // namespace neurontrace
