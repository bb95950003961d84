// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/source/framework/time_census.h"
#include "agent/source/framework/trace_event_parser.h"
#include "agent/source/framework/trace_file.h"
#include "agent/source/framework/xspace_scan.h"
#include "lib/trace/loss.h"
#include "lib/trace/remark.h"

namespace neurontrace {

// What must be known about a trace file before its events can be read. Kineto writes
// "baseTimeNanoseconds" after the events, so that this takes a first reading of the whole file.
// Made by a FactsReader and passed on to the EventReader of the same content.
struct TraceFileFacts {
  ContentKind kind = ContentKind::kUnknown;
  bool complete = false;      // ends as a trace file should
  std::string problem;        // why not, or why it is refused, for people
  bool is_refused = false;    // nothing of it is read, and more bytes would not help
  uint64_t base_time_ns = 0;  // "baseTimeNanoseconds"; 0: times count from the epoch
  // Of the first event that has a time; 0 without any. Of a mapping file, where nothing has one:
  // when it was changed last, so that what it maps was before.
  uint64_t first_time_ns = 0;
  uint64_t elements = 0;              // of traceEvents, or of data
  std::optional<int64_t> rank;        // distributedInfo.rank
  std::optional<int64_t> world_size;  // distributedInfo.world_size
  std::string rank_problem;           // the text of these two where it is no rank; for people
  TimeBounds time_bounds;             // which times its events can have
  uint64_t bytes_behind = 0;          // behind the end of the trace, other than blanks and NUL
  bool has_elements_behind = false;   // among these bytes, as in a second trace
  // The content that was read, uncompressed: its size and TraceFile::ContentMark.
  uint64_t content_bytes = 0;
  uint64_t content_mark = 0;
  // Its times count from a moment that is not known: it names no base, and they are not of the wall
  // clock.
  bool has_own_time = false;
  std::string base_description;  // of a base that the file itself does not name: where it is from,
                                 // or why there is none
  std::optional<XSpaceFacts> xspace;  // of an XSpace
  bool continues_prefix = false;      // it begins with the content that was asked about
};

// The first reading of a trace file, in steps, so that a large file does not hold up the sequence
// that it is read on. Owned by TraceFileStream; destroyed when the facts are known.
class FactsReader {
 public:
  virtual ~FactsReader() = default;
  // Reads about `bytes` more, or less if that is much work; returns true when nothing is left. A
  // broken file has facts too. Fails with ABORTED if the file changed; then it has none.
  virtual absl::StatusOr<bool> Step(uint64_t bytes) = 0;
  virtual const TraceFileFacts& facts() const = 0;
};

// The second reading: the events of the file one after the other in its order. What could not be
// read is a counted loss among them. Memory does not grow with the file. Used by one thread at a
// time.
class EventReader {
 public:
  enum class Kind : uint8_t {
    kEvent,       // event() tells more
    kLoss,        // loss() does
    kDamage,      // damage() does: of bytes that belong to no event
    kPassedOver,  // a part of the file that is neither
    kNotYet,      // no part was whole, after as much work as a call may do
    kChanged,     // the file changed; nothing of its new content was given out
    kEnd,
  };

  virtual ~EventReader() = default;
  // Advances to the next part and returns its kind. What the accessors return is valid until the
  // next call. Returns kEnd repeatedly at the end.
  virtual Kind Next() = 0;
  virtual const FrameworkEvent& event() const = 0;
  virtual const Loss& loss() const = 0;
  virtual const std::string& damage() const = 0;
  // A remark about the last element. Also made for an element that was passed over as stored, so
  // that counts are those of the whole file.
  struct Anomaly {
    RemarkKind kind = RemarkKind::kUnspecified;
    std::string detail;
  };
  virtual const std::vector<Anomaly>& anomalies() const = 0;
  // Returns the spans that begin and do not end. Called after kEnd.
  virtual Remark open_spans() const = 0;
  // Returns the index of the first element that has not been given out yet.
  virtual uint64_t position() const = 0;
  virtual uint64_t bytes_read() const = 0;

  // Reads the rest of the file in steps, and returns true when that is done. Called after kEnd.
  // content_mark() then equals that of the facts if both readings saw the same content.
  virtual absl::StatusOr<bool> Drain() = 0;
  virtual uint64_t content_mark() = 0;
  // Sets the state that the file is expected to have from now on.
  virtual void AcceptState(const FileState& state) = 0;
};

}  // namespace neurontrace
