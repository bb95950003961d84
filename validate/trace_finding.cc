// SPDX-License-Identifier: Apache-2.0
#include "validate/trace_finding.h"

#include "validate/limits.h"

namespace neurontrace {
namespace {

constexpr TraceSeverity kError = TraceSeverity::kError;
constexpr TraceSeverity kWarning = TraceSeverity::kWarning;

constexpr std::array kChecks = {
    TraceCheckInfo{TraceCheck::kFraming, "framing", kError, "tokenizer_skipped_packets"},
    TraceCheckInfo{TraceCheck::kPacket, "packet", kError, "track_event_tokenizer_errors"},
    TraceCheckInfo{TraceCheck::kCompression, "compression", kError, "tokenizer_skipped_packets"},
    TraceCheckInfo{TraceCheck::kCompressedSize, "compressed_size", kWarning, ""},
    TraceCheckInfo{TraceCheck::kSequenceId, "sequence_id", kError,
                   "track_event_missing_sequence_id"},
    TraceCheckInfo{TraceCheck::kSequenceState, "sequence_state", kError,
                   "packet_skipped_seq_needs_incremental_state_invalid"},
    TraceCheckInfo{TraceCheck::kPacketLoss, "packet_loss", kWarning,
                   "traced_buf_sequence_packet_loss"},
    TraceCheckInfo{TraceCheck::kTimestamp, "timestamp", kError, "track_event_missing_timestamp"},
    TraceCheckInfo{TraceCheck::kTimestampRange, "timestamp_range", kError,
                   "trace_sorter_negative_timestamp_dropped"},
    TraceCheckInfo{TraceCheck::kClock, "clock", kError, "clock_sync_failure"},
    TraceCheckInfo{TraceCheck::kClockSnapshot, "clock_snapshot", kError, "invalid_clock_snapshots"},
    TraceCheckInfo{TraceCheck::kClockDomains, "clock_domains", kError,
                   "clock_sync_unrelatable_clock_domains"},
    TraceCheckInfo{TraceCheck::kTrackUuid, "track_uuid", kError, "track_descriptor_missing_uuid"},
    TraceCheckInfo{TraceCheck::kTrackPid, "track_pid", kError,
                   "track_descriptor_process_missing_pid"},
    TraceCheckInfo{TraceCheck::kTrackTid, "track_tid", kError,
                   "track_descriptor_thread_missing_pid_tid"},
    TraceCheckInfo{TraceCheck::kTrackConflict, "track_conflict", kError,
                   "track_descriptor_conflicting_reservation"},
    TraceCheckInfo{TraceCheck::kTrackReuse, "track_reuse", kError, ""},
    TraceCheckInfo{TraceCheck::kTrackOrdering, "track_ordering", kError,
                   "track_descriptor_invalid_child_ordering"},
    TraceCheckInfo{TraceCheck::kTrackRoot, "track_root", kError,
                   "track_descriptor_default_track_with_parent"},
    TraceCheckInfo{TraceCheck::kTrackParent, "track_parent", kError,
                   "track_hierarchy_missing_uuid"},
    TraceCheckInfo{TraceCheck::kTrackMerged, "track_merged", kWarning, ""},
    TraceCheckInfo{TraceCheck::kTrackLate, "track_late", kWarning, ""},
    TraceCheckInfo{TraceCheck::kTrackUndescribed, "track_undescribed", kWarning, ""},
    TraceCheckInfo{TraceCheck::kInterned, "interned", kError, "interned_data_tokenizer_errors"},
    TraceCheckInfo{TraceCheck::kInternedMissing, "interned_missing", kError,
                   "track_event_parser_errors"},
    TraceCheckInfo{TraceCheck::kEventType, "event_type", kError, "track_event_parser_errors"},
    TraceCheckInfo{TraceCheck::kEndWithoutBegin, "end_without_begin", kWarning, ""},
    TraceCheckInfo{TraceCheck::kThreadEndWithoutBegin, "thread_end_without_begin", kError,
                   "track_event_thread_invalid_end"},
    TraceCheckInfo{TraceCheck::kMisplacedEnd, "misplaced_end", kError, "misplaced_end_event"},
    TraceCheckInfo{TraceCheck::kOverlap, "overlap", kError,
                   "slice_drop_overlapping_complete_event"},
    TraceCheckInfo{TraceCheck::kNegativeDuration, "negative_duration", kError,
                   "track_event_parser_errors"},
    TraceCheckInfo{TraceCheck::kOpenSlices, "open_slices", kWarning, ""},
    TraceCheckInfo{TraceCheck::kDepth, "depth", kError, "slice_max_depth_exceeded"},
    TraceCheckInfo{TraceCheck::kDuration, "duration", kError, ""},
    TraceCheckInfo{TraceCheck::kOrder, "order", kWarning, ""},
    TraceCheckInfo{TraceCheck::kStateTrack, "state_track", kError,
                   "track_event_state_missing_track_uuid"},
    TraceCheckInfo{TraceCheck::kCounterTrack, "counter_track", kError,
                   "track_event_counter_invalid_track_uuid"},
    TraceCheckInfo{TraceCheck::kCounterValue, "counter_value", kError,
                   "track_event_counter_missing_value"},
    TraceCheckInfo{TraceCheck::kExtraCounters, "extra_counters", kError,
                   "track_event_extra_counter_exceeds_max"},
    TraceCheckInfo{TraceCheck::kFlow, "flow", kWarning, ""},
    TraceCheckInfo{TraceCheck::kFlowSlice, "flow_slice", kWarning, ""},
    TraceCheckInfo{TraceCheck::kFlowDuplicate, "flow_duplicate", kError, "flow_duplicate_id"},
    TraceCheckInfo{TraceCheck::kFlowEnclosing, "flow_enclosing", kError, "flow_no_enclosing_slice"},
    TraceCheckInfo{TraceCheck::kFlowLegacy, "flow_legacy", kError, "flow_invalid_id"},
    TraceCheckInfo{TraceCheck::kLegacy, "legacy", kWarning, ""},
    TraceCheckInfo{TraceCheck::kExtension, "extension", kWarning, "unknown_extension_fields"},
    TraceCheckInfo{TraceCheck::kLimit, "limit", kWarning, ""},
};

constexpr bool AreInOrder() {
  for (size_t i = 0; i < kChecks.size(); ++i) {
    if (static_cast<size_t>(kChecks[i].check) != i) return false;
  }
  return kChecks.size() == static_cast<size_t>(TraceCheck::kCount);
}
static_assert(AreInOrder());

}  // namespace

const TraceCheckInfo& InfoOf(TraceCheck check) { return kChecks[static_cast<size_t>(check)]; }

std::string CountedWords(uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

bool TraceFindingLog::Count(TraceCheck check) {
  return counts_[static_cast<size_t>(check)]++ < validate_limits::kFindingsPerCheckMax;
}

uint64_t TraceFindingLog::CountOf(TraceSeverity severity) const {
  uint64_t count = 0;
  for (const TraceCheckInfo& info : kChecks) {
    if (info.severity == severity) count += counts_[static_cast<size_t>(info.check)];
  }
  return count;
}

}  // namespace neurontrace
