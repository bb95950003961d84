// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neurontrace {

// Errors are what makes Perfetto drop or misread something; warnings are what it tolerates, or what
// the validator does not check.
enum class TraceSeverity : uint8_t { kWarning, kError };

// What is checked. The table in trace_finding.cc names the checks, docs/formats/validate.md
// explains them.
enum class TraceCheck : uint8_t {
  kFraming,
  kPacket,
  kCompression,
  kCompressedSize,
  kSequenceId,
  kSequenceState,
  kPacketLoss,
  kTimestamp,
  kTimestampRange,
  kClock,
  kClockSnapshot,
  kClockDomains,
  kTrackUuid,
  kTrackPid,
  kTrackTid,
  kTrackConflict,
  kTrackReuse,
  kTrackOrdering,
  kTrackRoot,
  kTrackParent,
  kTrackMerged,
  kTrackLate,
  kTrackUndescribed,
  kInterned,
  kInternedMissing,
  kEventType,
  kEndWithoutBegin,
  kThreadEndWithoutBegin,
  kMisplacedEnd,
  kOpenSlices,
  kDepth,
  kDuration,
  kOrder,
  kStateTrack,
  kCounterTrack,
  kCounterValue,
  kExtraCounters,
  kFlow,
  kFlowSlice,
  kFlowLegacy,
  kUnchecked,
  kLimit,
  kCount,
};

struct TraceCheckInfo {
  TraceCheck check;
  std::string_view name;  // for scripts; never changes
  TraceSeverity severity;
  std::string_view statistic;  // the row of Perfetto's table `stats` that counts it; may be empty
};
const TraceCheckInfo& InfoOf(TraceCheck check);

// Where in the file: the packet's number from 1 on, and the offset of its first byte, after gzip.
// Packets in a packet of packets have its offset, and numbers of their own.
struct TracePosition {
  uint64_t packet = 0;
  uint64_t offset = 0;
};

struct TraceFinding {
  TraceCheck check = TraceCheck::kFraming;
  TracePosition at;
  std::string words;  // a sentence
};

// `1 slice`, `2 slices`.
std::string DescribeCount(uint64_t count, std::string_view what);

// Keeps the first findings of each check and counts all of them. One thread at a time.
class TraceFindingLog {
 public:
  // Sets the place of the findings that follow.
  void MoveTo(TracePosition position) { position_ = position; }
  const TracePosition& position() const { return position_; }

  template <typename... Args>
  void Add(TraceCheck check, fmt::format_string<Args...> format, Args&&... args) {
    if (!Count(check)) return;
    findings_.push_back({check, position_, fmt::format(format, std::forward<Args>(args)...)});
  }

  // Adds, once for each `what`, that the file has something that no check looks into.
  void AddUnchecked(std::string_view what);

  // In the order in which they were found.
  std::span<const TraceFinding> findings() const { return findings_; }
  uint64_t count(TraceCheck check) const { return counts_[static_cast<size_t>(check)]; }
  uint64_t errors() const { return CountOf(TraceSeverity::kError); }
  uint64_t warnings() const { return CountOf(TraceSeverity::kWarning); }

 private:
  bool Count(TraceCheck check);  // false: enough of these are kept
  uint64_t CountOf(TraceSeverity severity) const;

  TracePosition position_;
  std::vector<TraceFinding> findings_;
  std::array<uint64_t, static_cast<size_t>(TraceCheck::kCount)> counts_ = {};
};

}  // namespace neurontrace
