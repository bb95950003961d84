// SPDX-License-Identifier: Apache-2.0
#include "lib/validate/trace_finding.h"

#include <algorithm>

#include "lib/validate/limits.h"

namespace neurontrace {

// Names are part of the JSON output and must not change. The statistic is the name in Perfetto's
// src/trace_processor/storage/stats.h, by which a finding can be confirmed there, in the table
// `stats`.
const TraceCheckInfo& InfoOf(TraceCheck check) {
  using enum TraceCheck;
  using enum TraceSeverity;
  static constexpr TraceCheckInfo kChecks[] = {
      {kFraming, "framing", kError, "tokenizer_skipped_packets"},
      {kPacket, "packet", kError, "track_event_tokenizer_errors"},
      {kCompression, "compression", kError, "tokenizer_skipped_packets"},
      {kCompressedSize, "compressed_size", kWarning, ""},
      {kSequenceId, "sequence_id", kError, "track_event_missing_sequence_id"},
      {kSequenceState, "sequence_state", kError,
       "packet_skipped_seq_needs_incremental_state_invalid"},
      {kPacketLoss, "packet_loss", kWarning, "traced_buf_sequence_packet_loss"},
      {kTimestamp, "timestamp", kError, "track_event_missing_timestamp"},
      {kTimestampRange, "timestamp_range", kError, "trace_sorter_negative_timestamp_dropped"},
      {kClock, "clock", kError, "clock_sync_failure"},
      {kClockSnapshot, "clock_snapshot", kError, "invalid_clock_snapshots"},
      {kClockDomains, "clock_domains", kError, "clock_sync_unrelatable_clock_domains"},
      {kTrackUuid, "track_uuid", kError, "track_descriptor_missing_uuid"},
      {kTrackPid, "track_pid", kError, "track_descriptor_process_missing_pid"},
      {kTrackTid, "track_tid", kError, "track_descriptor_thread_missing_pid_tid"},
      {kTrackConflict, "track_conflict", kError, "track_descriptor_conflicting_reservation"},
      {kTrackReuse, "track_reuse", kError, ""},
      {kTrackOrdering, "track_ordering", kError, "track_descriptor_invalid_child_ordering"},
      {kTrackRoot, "track_root", kError, "track_descriptor_default_track_with_parent"},
      {kTrackParent, "track_parent", kError, "track_hierarchy_missing_uuid"},
      {kTrackMerged, "track_merged", kWarning, ""},
      {kTrackLate, "track_late", kWarning, ""},
      {kTrackUndescribed, "track_undescribed", kWarning, ""},
      {kInterned, "interned", kError, "interned_data_tokenizer_errors"},
      {kInternedMissing, "interned_missing", kError, "track_event_parser_errors"},
      {kEventType, "event_type", kError, "track_event_parser_errors"},
      {kEndWithoutBegin, "end_without_begin", kWarning, ""},
      {kThreadEndWithoutBegin, "thread_end_without_begin", kError,
       "track_event_thread_invalid_end"},
      {kMisplacedEnd, "misplaced_end", kError, "misplaced_end_event"},
      {kOpenSlices, "open_slices", kWarning, ""},
      {kDepth, "depth", kError, "slice_max_depth_exceeded"},
      {kDuration, "duration", kError, ""},
      {kOrder, "order", kWarning, ""},
      {kStateTrack, "state_track", kError, "track_event_state_missing_track_uuid"},
      {kCounterTrack, "counter_track", kError, "track_event_counter_invalid_track_uuid"},
      {kCounterValue, "counter_value", kError, "track_event_counter_missing_value"},
      {kExtraCounters, "extra_counters", kError, "track_event_extra_counter_exceeds_max"},
      {kFlow, "flow", kWarning, ""},
      {kFlowSlice, "flow_slice", kWarning, ""},
      {kFlowLegacy, "flow_legacy", kError, "flow_without_direction"},
      {kUnchecked, "unchecked", kWarning, ""},
      {kLimit, "limit", kWarning, ""},
  };
  // The index is the enumeration's value.
  static_assert(std::size(kChecks) == static_cast<size_t>(kCount) &&
                std::ranges::is_sorted(kChecks, {}, &TraceCheckInfo::check));
  return kChecks[static_cast<size_t>(check)];
}

std::string DescribeCount(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void TraceFindingLog::AddUnchecked(std::string_view what) {
  const std::string words = fmt::format("Not checked: {}.", what);
  for (const TraceFinding& finding : findings_) {
    // At most a few kinds exist, so that a search is cheap.
    if (finding.check == TraceCheck::kUnchecked && finding.words == words) return;
  }
  Add(TraceCheck::kUnchecked, "{}", words);
}

bool TraceFindingLog::Count(TraceCheck check) {
  return counts_[static_cast<size_t>(check)]++ < validate_limits::kFindingsPerCheckMax;
}

uint64_t TraceFindingLog::CountOf(TraceSeverity severity) const {
  uint64_t count = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (InfoOf(static_cast<TraceCheck>(i)).severity == severity) count += counts_[i];
  }
  return count;
}

}  // namespace neurontrace
