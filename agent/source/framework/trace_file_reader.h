// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "agent/source/framework/element_cutter.h"
#include "agent/source/framework/mapping_entry_parser.h"
#include "agent/source/framework/span_joiner.h"
#include "agent/source/framework/trace_event_parser.h"
#include "agent/source/framework/trace_file.h"
#include "agent/source/framework/trace_file_scan.h"
#include "trace/loss.h"
#include "trace/remark.h"

namespace neurontrace {

// The events of one trace file, or the entries of one mapping file, one after the other in the
// file's order, with what could not be read as counted losses among them. The second reading:
// TraceFileScan was the first. Memory does not grow with the file. One thread at a time.
class TraceFileReader {
 public:
  // `first_element`: elements before it are passed over (an earlier agent has stored them). `root`:
  // see TraceFile::Open.
  static absl::StatusOr<TraceFileReader> Open(const std::string& path, const TraceFileFacts& facts,
                                              uint64_t first_element = 0,
                                              const std::string& root = "");

  enum class Kind : uint8_t {
    kEvent,       // event() tells more
    kLoss,        // loss() does
    kPassedOver,  // a part of the file that is neither
    kNotYet,      // as the cutter's: no part was whole, after as much work as a call may do
    kEnd,
  };

  // What comes next; event() and loss() hold until the next call. After kEnd kEnd again.
  Kind Next();
  const FrameworkEvent& event() const { return event_; }
  const Loss& loss() const { return loss_; }
  // What has to be said of the element that came last, also of one that was passed over as it is
  // stored: so that counts are those of the whole file.
  struct Oddity {
    RemarkKind kind = RemarkKind::kUnspecified;
    std::string detail;
  };
  const std::vector<Oddity>& oddities() const { return oddities_; }
  // The spans that its elements begin and end.
  const SpanJoiner& spans() const { return spans_; }

  // Index of the first element of traceEvents not given out yet.
  uint64_t position() const { return position_; }
  uint64_t bytes_read() const { return cutter_.position(); }
  size_t window_bytes_max() const { return cutter_.window_bytes_max(); }

 private:
  TraceFileReader(TraceFile file, std::string_view array_key, const TraceFileFacts& facts,
                  uint64_t first_element);
  Kind TakeElement(std::string_view text);
  void NoteOddities(const absl::Status& status, SpanJoiner::Outcome outcome);
  Kind LoseElement(LossReason reason, std::string_view why);
  Kind LoseRest(LossReason reason, std::string_view why);

  std::unique_ptr<TraceFile> file_;
  ElementCutter cutter_;
  TraceEventParser parser_;
  std::optional<MappingEntryParser> entries_;  // of a mapping file
  SpanJoiner spans_;
  const std::string refusal_;  // of a file that is not to be read
  uint64_t first_element_;
  uint64_t position_ = 0;
  bool ended_ = false;
  std::vector<Oddity> oddities_;
  FrameworkEvent event_;
  Loss loss_;
};

}  // namespace neurontrace
