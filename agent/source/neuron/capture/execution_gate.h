// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lib/trace/event.h"
#include "lib/trace/loss.h"

namespace neurontrace {

// Which executions of each core a capture records, both bounds included.
struct ExecutionBounds {
  uint64_t first = 0;  // 0: not known yet
  uint64_t last = 0;   // 0: until the capture is stopped
  friend bool operator==(const ExecutionBounds&, const ExecutionBounds&) = default;
};

// What a worker's cores have executed, as a capture reports it; 0: none seen. Cores without any
// execution number are left aside, as they may execute nothing at all.
struct ExecutionProgress {
  uint64_t first = 0;          // recorded: the lowest of the cores' first
  uint64_t highest_first = 0;  // the highest of them; 0 also if it is known of no core
  uint64_t lowest_newest = 0;  // seen: the lowest of the cores' newest; 0 also if one is not known
  uint64_t newest = 0;         // the highest of them; over `last` once all cores are past it
  uint32_t cores_without = 0;  // cores with an execution that recorded none
};

// Returns the index of the value that has the number of its execution, for events of this shape; -1
// if there is none. Pure.
int8_t FindExecution(const Shape& shape);
// Returns the number at `index`, a result of FindExecution for this shape; nothing if it is no
// number. Pure.
std::optional<uint64_t> ReadExecution(const Shape& shape, std::span<const AttributeValue> values,
                                      int8_t index);

// Follows the executions of one core in one capture, and decides in a capture by execution which
// events belong to it. Events with an execution number are decided by it, in whatever order they
// come. Those without one follow their core: none passes before the first event of the first
// execution, nor after the last execution. A stop follows its start. A core is past its last
// execution when a later one is seen and no span of the capture is open, or when a much later one
// is seen.
//
// Numbers come from a worker and are not trusted: one far from all seen before is believed only
// when kDoubtsMax of them, near each other, came in a row. Until then such events count as without
// a number. A plain value; used by one thread at a time.
class ExecutionGate {
 public:
  // Starts whose stop is awaited. Beyond, all of them are forgotten, and their stops follow the
  // core.
  static constexpr size_t kSpansMax = 4'096;
  // How many executions of one core may be in progress at once.
  static constexpr uint64_t kInFlightMax = 16;
  // How far apart the numbers of two successive events may be to be believed.
  static constexpr uint64_t kLeapMax = 65'536;
  static constexpr uint32_t kDoubtsMax = 3;

  explicit ExecutionGate(bool by_execution) : by_execution_(by_execution) {}

  // Sets where the capture begins and ends, once that is known; the last call counts.
  void SetBounds(const ExecutionBounds& bounds) { bounds_ = bounds; }
  // Events of this core are stored from an earlier run of the agent, so it was open.
  void ResumeOpen() { open_ = resumed_ = true; }
  // Handles a restart of the runtime's trace, which may number executions from the beginning.
  void BeginTrace();

  struct Event {
    std::string_view event_type;
    Phase phase = Phase::kOther;
    std::optional<uint64_t> tracking_id;
    std::optional<uint64_t> execution;
  };
  // Follows the event; returns true if the capture records it.
  bool Admit(const Event& event);
  // Returns whether events without an execution number pass: the core is between its first and its
  // last.
  bool passing() const { return !by_execution_ || (open_ && !past_); }
  // Returns whether it has been open, or always was.
  bool opened() const { return !by_execution_ || open_; }
  // Returns true once nothing more of the capture is expected of this core, except losses of the
  // same document.
  bool past() const { return past_; }

  // Takes a loss of this core, found between documents or at the end of one; returns true if it is
  // to be recorded now. Losses before the first execution or after the last do not belong to the
  // capture. If it is not clear whether one is before the first, it is held back until the core
  // opens.
  bool TakeLoss(const Loss& loss);
  // Returns held losses that are to be recorded now. Called after the last loss of a document.
  std::vector<Loss> EndDocument();

  // Returns whether the core recorded in an earlier run of the agent; first() is then not its
  // first.
  bool resumed() const { return resumed_; }
  // Return the lowest execution recorded, and the highest seen.
  std::optional<uint64_t> first() const { return first_; }
  std::optional<uint64_t> newest() const { return newest_; }

 private:
  using SpanKey = std::pair<uint64_t, uint64_t>;  // hash of the event type, tracking id
  struct Span {
    bool passes = false;
    bool of_bounds = false;  // of an execution between first and last
  };

  // Returns the number if it is believed, and counts it as seen.
  std::optional<uint64_t> Believed(std::optional<uint64_t> execution);
  bool Near(uint64_t execution) const;
  bool Within(uint64_t execution) const {
    return execution >= bounds_.first && (bounds_.last == 0 || execution <= bounds_.last);
  }
  // Decides about an event of a capture by execution.
  bool Decide(const Event& event, std::optional<uint64_t> execution);
  void ForgetSpan(const SpanKey& key);
  // Finds out whether the core is past its last execution.
  void RecordPast();

  bool by_execution_ = false;
  ExecutionBounds bounds_;
  bool open_ = false;
  bool resumed_ = false;
  bool past_ = false;
  std::optional<uint64_t> first_;
  std::optional<uint64_t> newest_;
  // The last number that was not believed, and how many such numbers came in a row.
  std::optional<uint64_t> doubtful_;
  uint32_t doubts_ = 0;
  absl::flat_hash_map<SpanKey, Span> spans_;
  size_t open_spans_of_bounds_ = 0;
  // Losses that may be before the first execution, until that is known.
  std::vector<Loss> held_;

  // The document at hand.
  bool earlier_in_document_ = false;  // an execution before the first
  bool opened_in_document_ = false;
  bool past_in_document_ = false;
};

}  // namespace neurontrace
