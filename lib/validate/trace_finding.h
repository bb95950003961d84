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

// Errors make Perfetto drop or misread content. Warnings are tolerated by Perfetto, or mark content
// that the validator does not check.
enum class TraceSeverity : uint8_t { kWarning, kError };

// The checks. The table in trace_finding.cc names them, docs/formats/validate.md explains them. The
// order is that of reports: from framing to events.
enum class TraceCheck : uint8_t {
  // Here is no packet, or the file ends within one.
  kFraming,
  // The bytes of a packet are no message.
  kPacket,
  // Compressed packets are damaged, or contain compressed packets.
  kCompression,
  // Compressed packets exceed the size that Perfetto advises.
  kCompressedSize,
  // A packet needs a sequence and belongs to none.
  kSequenceId,
  // A packet needs or extends a state that its sequence does not have.
  kSequenceState,
  // A packet reports that others were lost before it.
  kPacketLoss,
  // An event has no time.
  kTimestamp,
  // A time is over 2^63 ns.
  kTimestampRange,
  // A time is by a clock that no snapshot before it relates to the trace's.
  kClock,
  // A snapshot contradicts itself or earlier ones.
  kClockSnapshot,
  // BOOTTIME is not related to the trace's clock at the first conversion.
  kClockDomains,
  // A descriptor lacks its uuid. The next two: it lacks the pid of a process, or pid or tid of a
  // thread.
  kTrackUuid,
  kTrackPid,
  kTrackTid,
  // A second descriptor of a track differs from the first.
  kTrackConflict,
  // Two tracks are the same process or thread.
  kTrackReuse,
  // The order of children is none of ChildOrder.
  kTrackOrdering,
  // Track 0, the root, has a parent.
  kTrackRoot,
  // A track hangs from a track that is never described, or is too deep.
  kTrackParent,
  // Siblings have one name and may be merged into one row.
  kTrackMerged,
  // A descriptor follows the first event of its track, or never comes.
  kTrackLate,
  kTrackUndescribed,
  // A text is interned under number 0, or a number has two texts.
  kInterned,
  // A number of a text was not interned before.
  kInternedMissing,
  // The type of an event does not exist.
  kEventType,
  // An end matches no open slice; on tracks of threads Perfetto counts an error.
  kEndWithoutBegin,
  kThreadEndWithoutBegin,
  // A slice ends while slices in it stay open: they are cut short.
  kMisplacedEnd,
  // A slice never ends.
  kOpenSlices,
  // Slices are nested deeper than Perfetto allows.
  kDepth,
  // In files of neurontrace, a slice's length differs from its argument, because two slices
  // overlap.
  kDuration,
  // Time runs backwards on a track.
  kOrder,
  // The event of a state names no track.
  kStateTrack,
  // A value is on a track that is not described as a counter.
  kCounterTrack,
  // A counter's event has no finite value.
  kCounterValue,
  // An event has more extra values than tracks for them.
  kExtraCounters,
  // A flow ends that has not begun.
  kFlow,
  // A flow is on an event that begins or ends no slice.
  kFlowSlice,
  // A flow of a LegacyEvent has no direction.
  kFlowLegacy,
  // Content that was not checked, see AddUnchecked and validate_limits.
  kUnchecked,
  kLimit,
  // The number of checks.
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

// Returns a count with its noun: `1 slice`, `2 slices`. The plural is formed with an s.
std::string DescribeCount(uint64_t count, std::string_view what);

// Keeps the first validate_limits::kFindingsPerCheckMax findings of each check and counts all of
// them, so that a damaged file cannot fill memory. Shared by all parts of the validator; one thread
// at a time.
class TraceFindingLog {
 public:
  // Sets the place of the following findings.
  void MoveTo(TracePosition position) { position_ = position; }
  // Returns the place of the packet at hand.
  const TracePosition& position() const { return position_; }

  // Adds a finding at the current place. The text is formatted only if it is kept.
  template <typename... Args>
  void Add(TraceCheck check, fmt::format_string<Args...> format, Args&&... args) {
    if (!Count(check)) return;
    findings_.push_back({check, position_, fmt::format(format, std::forward<Args>(args)...)});
  }

  // Reports, once for each `what`, that the file has content that no check examines. `what` is a
  // constant, so that few kinds exist.
  void AddUnchecked(std::string_view what);

  // Returns the kept findings in the order in which they were found.
  std::span<const TraceFinding> findings() const { return findings_; }
  // Return how many findings there are, including those that were not kept.
  uint64_t count(TraceCheck check) const { return counts_[static_cast<size_t>(check)]; }
  uint64_t errors() const { return CountOf(TraceSeverity::kError); }
  uint64_t warnings() const { return CountOf(TraceSeverity::kWarning); }

 private:
  // Counts a finding. Returns whether it is to be kept.
  bool Count(TraceCheck check);
  uint64_t CountOf(TraceSeverity severity) const;

  TracePosition position_;
  std::vector<TraceFinding> findings_;
  std::array<uint64_t, static_cast<size_t>(TraceCheck::kCount)> counts_ = {};
};

}  // namespace neurontrace
