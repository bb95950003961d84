// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace neurontrace {

// The subject of a remark. Values are on the wire and in the store and equal those of
// neurontrace.v1.RemarkKind: never change one. 1 to 39 are of framework files, 40 to 59 of ranks,
// 60 to 79 of exports and the store.
enum class RemarkKind : uint8_t {
  kUnspecified = 0,
  kDamagedElement = 1,     // an element or the rest of a file that is lost: the losses say how many
  kNoTime = 2,             // an event without a usable time
  kInvalidDuration = 3,    // an event whose duration is negative or beyond any range
  kOpenSpan = 4,           // a span that begins and does not end
  kEndWithoutBegin = 5,    // the end of a span that does not begin
  kUnknownOrigin = 6,      // a file whose times count from a moment that it does not name
  kFileChanged = 7,        // a file that changed while it was read, so that part of it is lost
  kFilePassedOver = 8,     // a trace file that could not be read, with the reason
  kTooManyFiles = 9,       // files beyond the limit of one capture
  kSameContent = 10,       // a file with the content of another one, which counts once
  kRankUnreadable = 11,    // a file whose rank cannot be read
  kCounterText = 14,       // a value of a counter that is no number
  kNoFrameworkTrace = 15,  // a worker whose framework was asked for a trace, and there is none
  kNoTrace = 12,           // a file of the directory that its name or content shows to be no trace
  kFileRewritten = 13,     // a file whose content changed after it was read; both are kept
  kRankContradiction = 40,  // evidence of a rank that other evidence contradicts
  kRankGuessed = 41,        // a rank that is a guess
  kRankRefused = 42,        // evidence of a rank that is not used, where the rank stays unknown
  kChunkUnreadable = 60,    // a stored chunk whose content no reader could decode
  kStoreFault = 61,         // something that a check of the store found
};

// A notable fact about a stream, or about a worker's part in a capture, that is not a loss of
// events. A plain value.
struct Remark {
  RemarkKind kind = RemarkKind::kUnspecified;
  uint64_t count = 0;
  // Where and why, for people: the first limits::kRemarkDetailsMax of them, each cut to
  // limits::kRemarkDetailBytesMax. `count` includes all of them.
  std::vector<std::string> details;

  friend bool operator==(const Remark&, const Remark&) = default;
};

// Adds `count` occurrences with one detail (which may be empty) to the remark of that kind.
void AddRemark(RemarkKind kind, uint64_t count, std::string_view detail,
               std::vector<Remark>& remarks);
// Adds the counts and details of `more` to `sums`, kind by kind. Counts saturate, as they may come
// from a hostile producer.
void AddRemarks(std::span<const Remark> more, std::vector<Remark>& sums);
// Raises the remark of that kind to the count of `found`, and adds details that it does not have.
// Adding the same finding again changes nothing.
void MergeFound(const Remark& found, std::vector<Remark>& remarks);
// Replaces each remark by the one of the same kind in `newer`; a count of 0 removes it.
void ReplaceRemarks(std::span<const Remark> newer, std::vector<Remark>& remarks);

// The texts of a kind. The one table of kinds: unknown ones have no row.
struct RemarkKindRow {
  RemarkKind kind;
  std::string_view name;  // "no_time": in JSON and metrics
  std::string_view one;   // "event has no usable time", after the count 1
  std::string_view many;  // "events have no usable time", after any other count
  // Whether it speaks against a capture's completeness: the certificate counts it as a finding, and
  // commands end with exit code 3. Otherwise it is a note.
  bool is_finding;
};
// Returns the row of each known kind.
std::span<const RemarkKindRow> RemarkKinds();
// Returns the row of a kind, or null if this version does not know it.
const RemarkKindRow* FindRemarkKind(RemarkKind kind);

// Returns a remark as text: "3 events have no usable time (element 7 of x.json: no "ts"; …)".
std::string Describe(const Remark& remark);

}  // namespace neurontrace
