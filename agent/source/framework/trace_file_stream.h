// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/source/framework/trace_file_reader.h"
#include "agent/source/framework/trace_file_scan.h"
#include "agent/source/shape_cache.h"
#include "agent/source/stream_writer.h"

namespace neurontrace {

// One trace file on its way into one stream: looked through, then read and written, a step at a
// time. On the agent's sequence.
class TraceFileStream {
 public:
  enum class State : uint8_t {
    kScanning,
    kIncomplete,  // does not end as a trace file should: Read it all the same, or try again later
    kScanned,     // whole, and not begun
    kReading,
    kEnded,   // everything handed over; chunks may lack their receipts
    kFailed,  // cannot be opened; see problem()
  };

  // Begins to look through the file. `root`: see TraceFile::Open.
  explicit TraceFileStream(std::string path, std::string root = "");

  // From kScanned or kIncomplete: writes the file's events to `writer`, continuing behind what its
  // cursor says. The first element of traceEvents to write is `first_element`.
  void Read(std::unique_ptr<StreamWriter> writer, uint64_t first_element);
  // The store has this stream to its end: nothing to do.
  void MarkStored();

  // One bounded piece of work, about a millisecond or two. Not while the sink has no room.
  void Step(ShapeCache& shapes);

  State state() const { return state_; }
  bool works() const { return state_ == State::kScanning || state_ == State::kReading; }
  // kEnded or kFailed, and nothing is without a receipt.
  // Closes the chunk that is open.
  void Flush();
  bool finished() const;
  const std::string& path() const { return path_; }
  // Why the file is incomplete or could not be opened.
  const std::string& problem() const { return problem_; }
  const TraceFileFacts& facts() const { return facts_; }
  StreamWriter::Counts counts() const;

 private:
  void Fail(const absl::Status& status);
  void StepScan();
  void StepRead(ShapeCache& shapes);
  void RemarkOpenSpans();

  const std::string path_;
  const std::string root_;
  State state_ = State::kScanning;
  std::string problem_;
  TraceFileFacts facts_;
  std::optional<TraceFileScan> scan_;
  std::optional<TraceFileReader> reader_;
  // The position of a record is the index of the element.
  std::unique_ptr<StreamWriter> writer_;
};

}  // namespace neurontrace
