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

// Errors make Perfetto drop or misread content. Warnings are tolerated by it, or not checked by the
// validator.
enum class TraceSeverity : uint8_t { kWarning, kError };

// The checks. The table in trace_finding.cc names them, docs/formats/validate.md explains them.
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

// The fixed properties of a check.
struct TraceCheckInfo {
  TraceCheck check;
  std::string_view name;  // for scripts; never changes
  TraceSeverity severity;
  std::string_view statistic;  // the row of Perfetto's table `stats` that counts it; may be empty
};
// Returns the properties of a check.
const TraceCheckInfo& InfoOf(TraceCheck check);

// A place in the file: the packet's number from 1 on, and the offset of its first byte after
// uncompressing gzip. Packets inside a compressed packet have its offset, and numbers of their own.
struct TracePosition {
  uint64_t packet = 0;
  uint64_t offset = 0;
};

// One finding of a check.
struct TraceFinding {
  TraceCheck check = TraceCheck::kFraming;
  TracePosition at;
  std::string words;  // a sentence
};

// Returns a count with its noun: `1 slice`, `2 slices`.
std::string DescribeCount(uint64_t count, std::string_view what);

// Keeps the first validate_limits::kFindingsPerCheckMax findings of each check and counts all of
// them. One thread at a time.
class TraceFindingLog {
 public:
  // Sets the place of the following findings.
  void MoveTo(TracePosition position) { position_ = position; }
  const TracePosition& position() const { return position_; }

  // Adds a finding at the current place. The text is formatted only if it is kept.
  template <typename... Args>
  void Add(TraceCheck check, fmt::format_string<Args...> format, Args&&... args) {
    if (!Count(check)) return;
    findings_.push_back({check, position_, fmt::format(format, std::forward<Args>(args)...)});
  }

  // Reports, once for each `what`, that the file has content that no check examines.
  void AddUnchecked(std::string_view what);

  // Returns the kept findings in the order in which they were found.
  std::span<const TraceFinding> findings() const { return findings_; }
  uint64_t count(TraceCheck check) const { return counts_[static_cast<size_t>(check)]; }
  uint64_t errors() const { return CountOf(TraceSeverity::kError); }
  uint64_t warnings() const { return CountOf(TraceSeverity::kWarning); }

 private:
  // Returns whether the finding is to be kept.
  bool Count(TraceCheck check);
  uint64_t CountOf(TraceSeverity severity) const;

  TracePosition position_;
  std::vector<TraceFinding> findings_;
  std::array<uint64_t, static_cast<size_t>(TraceCheck::kCount)> counts_ = {};
};

}  // namespace neurontrace
