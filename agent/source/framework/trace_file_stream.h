// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/source/framework/trace_file.h"
#include "agent/source/framework/trace_file_reading.h"
#include "agent/source/shape_cache.h"
#include "agent/source/stream_writer.h"

namespace neurontrace {

class SessionBase;

// The way of one trace file into one stream: it is scanned, then read and written, a step at a
// time. Both readings are of one open file. If that changes meanwhile, it is compared with what the
// first reading saw: if it still has the same content, as after a rename, reading continues;
// otherwise the stream ends with a loss of unknown size, so that the events of two contents are
// never mixed. On the agent's sequence. Owned by FrameworkCapture, which decides after the scan
// whether and under which name it is read.
class TraceFileStream {
 public:
  enum class State : uint8_t {
    kScanning,
    kNoTrace,     // by its first bytes, where that is no error; see problem()
    kIncomplete,  // does not end as a trace file should: Read it all the same, or try again later
    kScanned,     // whole, and not begun
    kReading,
    kEnded,    // everything handed over; chunks may lack their receipts
    kChanged,  // while it was looked through: nothing was read of it
    kFailed,   // cannot be opened; see problem()
  };

  struct Options {
    std::string root;           // see TraceFile::Open
    bool must_be_trace = true;  // what is no trace is refused, rather than kNoTrace
    // facts().continues_prefix: whether the file begins with this content.
    uint64_t prefix_bytes = 0;
    uint64_t prefix_mark = 0;
  };

  // Opens the file; state() is kScanning, or kFailed or kChanged if that did not work.
  TraceFileStream(std::string path, Options options);
  ~TraceFileStream();
  explicit TraceFileStream(std::string path) : TraceFileStream(std::move(path), Options()) {}

  // Starts, in kScanned or kIncomplete, to write the file's events to `writer`, from
  // `first_element` on. With `is_continuation`, an earlier stream has reported what was wrong with
  // the elements before.
  void Read(std::unique_ptr<StreamWriter> writer, uint64_t first_element,
            bool is_continuation = false);
  // Ends the stream, as the store has it to its end. Requires kScanned or kIncomplete; state() is
  // kEnded afterwards.
  void MarkStored();

  // Does one bounded piece of work, about one or two milliseconds. Not to be called while the sink
  // has no room.
  void Step(ShapeCache& shapes);

  State state() const { return state_; }
  bool works() const { return state_ == State::kScanning || state_ == State::kReading; }
  // Closes the chunk that is open.
  void Flush();
  // Returns true if there is nothing more to do and no chunk without a receipt.
  bool finished() const;
  const std::string& path() const { return path_; }
  // Returns why the file is incomplete, is no trace or could not be opened, or its first damage.
  const std::string& problem() const { return problem_; }
  const TraceFileFacts& facts() const { return facts_; }
  // Returns the state of the file when it was opened.
  const FileState& opened_state() const { return opened_state_; }
  // Returns the number of elements that were read, or passed over as stored.
  uint64_t position() const { return position_; }
  // Returns whether the stream ended because the file changed.
  bool has_changed() const { return has_changed_; }
  StreamWriter::Counts counts() const;
  const StreamIdentity* identity() const { return writer_ ? &writer_->stream() : nullptr; }

 private:
  // Makes state() kFailed with the status as the problem, as the file cannot be read at all.
  void Fail(const absl::Status& status);
  // The steps of kScanning: probe the first bytes, scan, look for the session's base.
  void StepScan();
  void EndScan();
  absl::Status Probe();
  void BeginScan(ContentKind kind);
  // The steps of kReading: read the events, drain the rest, and check the content after a change.
  void OpenReader();
  void StepRead(ShapeCache& shapes);
  void RemarkOpenSpans();
  void TakeLoss();
  void AddDamage(uint64_t at, const std::string& what);
  void StepDrain();
  void BeginCheck();
  void StepCheck();
  // Ends the stream with a loss of unknown size.
  void EndChanged(const std::string& what);
  void End();
  // Returns the text with the stream's name in front.
  std::string InFile(const std::string& what) const;

  const std::string path_;
  const Options options_;
  State state_ = State::kScanning;
  std::string problem_;
  FileState opened_state_;
  TraceFileFacts facts_;
  std::optional<TraceFile> file_;  // open, for further readings
  std::unique_ptr<FactsReader> scan_;
  std::unique_ptr<SessionBase> base_;  // being looked for, after the scan
  // Null while the file is scanned, and while it must be checked before it can be opened again.
  std::unique_ptr<EventReader> reader_;
  std::optional<TraceFile> check_;  // compares the content with that of the scan
  uint32_t checks_ = 0;
  bool draining_ = false;
  bool has_changed_ = false;
  uint64_t reported_before_ = 0;  // problems of elements before were reported
  // Number of the next element.
  uint64_t position_ = 0;
  // The position of a record is the index of the element.
  std::unique_ptr<StreamWriter> writer_;
};

}  // namespace neurontrace
