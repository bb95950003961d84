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

// Errors are what makes Perfetto drop or misread something; warnings what it puts up with, or what
// the validator could not look into.
enum class TraceSeverity : uint8_t { kWarning, kError };

// What is checked. The names are in the table of trace_finding.cc, and docs/formats/validate.md.
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
  kOverlap,
  kNegativeDuration,
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
  kFlowDuplicate,
  kFlowEnclosing,
  kFlowLegacy,
  kLegacy,
  kExtension,
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
std::string CountedWords(uint64_t count, std::string_view what);

// What was found: of each check the first ones, and how many there are. One thread at a time.
class TraceFindingLog {
 public:
  // Where findings are from now on.
  void MoveTo(TracePosition position) { position_ = position; }
  const TracePosition& position() const { return position_; }

  template <typename... Args>
  void Add(TraceCheck check, fmt::format_string<Args...> format, Args&&... args) {
    if (!Count(check)) return;
    findings_.push_back({check, position_, fmt::format(format, std::forward<Args>(args)...)});
  }

  // In the order in which they were found.
  std::span<const TraceFinding> findings() const { return findings_; }
  uint64_t count(TraceCheck check) const { return counts_[static_cast<size_t>(check)]; }
  uint64_t errors() const { return CountOf(TraceSeverity::kError); }
  uint64_t warnings() const { return CountOf(TraceSeverity::kWarning); }

 private:
  bool Count(TraceCheck check);  // false: there are enough of these
  uint64_t CountOf(TraceSeverity severity) const;

  TracePosition position_;
  std::vector<TraceFinding> findings_;
  std::array<uint64_t, static_cast<size_t>(TraceCheck::kCount)> counts_ = {};
};

}  // namespace neurontrace
