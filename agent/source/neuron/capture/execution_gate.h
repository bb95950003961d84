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

// Which executions of each core a capture records; both ends in.
struct ExecutionBounds {
  uint64_t first = 0;  // 0: not known yet
  uint64_t last = 0;   // 0: until the capture is stopped
  friend bool operator==(const ExecutionBounds&, const ExecutionBounds&) = default;
};

// What a worker's cores have executed, as a capture reports it; 0: none seen.
struct ExecutionProgress {
  uint64_t first = 0;   // recorded: the lowest of the cores' first
  uint64_t newest = 0;  // seen: the highest of the cores' newest; over `last` once all are past it
};

// Where an event of this shape has the number of its execution among its values, or -1.
int8_t FindExecution(const Shape& shape);
// The number at `index`, which FindExecution gave for this shape; nothing where it is none.
std::optional<uint64_t> ReadExecution(const Shape& shape, std::span<const AttributeValue> values,
                                      int8_t index);

// One core's executions in one capture: watches which there are, and in a capture by execution says
// which events belong to it. Those of an execution are told by its number, whatever order they come
// in; those without a number follow their core (nothing passes before the first event of the first
// execution, nor behind the last one), and a stop follows its start. A core is behind its last
// execution when a later one is seen and no span of the capture's is open, or a much later one.
//
// Numbers come from a worker and are not trusted: those far from all that was seen before are
// believed when kDoubtsMax of them, near each other, came in a row. Until then their events count
// as without a number. A plain value; one thread at a time.
class ExecutionGate {
 public:
  // Starts whose stop is awaited. Beyond: all of them are forgotten, and their stops follow the
  // core.
  static constexpr size_t kSpansMax = 4'096;
  // Executions of one core at once, at the most.
  static constexpr uint64_t kInFlightMax = 16;
  // How far apart the numbers of two events that follow each other are believed to be.
  static constexpr uint64_t kLeapMax = 65'536;
  static constexpr uint32_t kDoubtsMax = 3;

  explicit ExecutionGate(bool by_execution) : by_execution_(by_execution) {}

  // Where the capture begins and ends, when it is known; again with others: the newest count.
  void SetBounds(const ExecutionBounds& bounds) { bounds_ = bounds; }
  // Events of this core are stored from an earlier run of the agent: it was open.
  void ResumeOpen() { open_ = true; }
  // The runtime begins anew, and may count from the beginning.
  void BeginTrace();

  struct Event {
    std::string_view event_type;
    Phase phase = Phase::kOther;
    std::optional<uint64_t> tracking_id;
    std::optional<uint64_t> execution;
  };
  // Takes note of the event; true if the capture records it.
  bool Admit(const Event& event);
  // Events without an execution number pass: the core is between its first and its last.
  bool passing() const { return !by_execution_ || (open_ && !past_); }
  // It has been open, or always was.
  bool opened() const { return !by_execution_ || open_; }
  bool past() const { return past_; }

  // Losses of this core, found between documents or at the end of one. What is lost before the
  // first execution, or behind the last, is none of the capture's. Where the beginning cannot be
  // told from what was lost, the loss is held back until the core opens. True: tell it now.
  bool TakeLoss(const Loss& loss);
  // After the last loss of a document; gives what was held back and is to be told now.
  std::vector<Loss> EndDocument();

  // Of the executions recorded, and seen.
  std::optional<uint64_t> first() const { return first_; }
  std::optional<uint64_t> newest() const { return newest_; }

 private:
  using SpanKey = std::pair<uint64_t, uint64_t>;  // hash of the event type, tracking id
  struct Span {
    bool passes = false;
    bool of_bounds = false;  // of an execution between first and last
  };

  std::optional<uint64_t> Believed(std::optional<uint64_t> execution);
  bool Near(uint64_t execution) const;
  bool Within(uint64_t execution) const {
    return execution >= bounds_.first && (bounds_.last == 0 || execution <= bounds_.last);
  }
  bool Decide(const Event& event, std::optional<uint64_t> execution);
  void ForgetSpan(const SpanKey& key);
  void NotePast();

  bool by_execution_ = false;
  ExecutionBounds bounds_;
  bool open_ = false;
  bool past_ = false;
  std::optional<uint64_t> first_;
  std::optional<uint64_t> newest_;
  std::optional<uint64_t> doubtful_;  // the last number, if it was not believed
  uint32_t doubts_ = 0;               // such numbers in a row, near each other
  absl::flat_hash_map<SpanKey, Span> spans_;
  size_t open_spans_of_bounds_ = 0;
  std::vector<Loss> held_;

  // The document at hand.
  bool earlier_in_document_ = false;  // an execution before the first
  bool opened_in_document_ = false;
  bool past_in_document_ = false;
};

// All cores of a worker together.
class ExecutionSummary {
 public:
  explicit ExecutionSummary(const ExecutionBounds& bounds) : bounds_(bounds) {}
  void Add(const ExecutionGate& gate);
  ExecutionProgress progress() const;

 private:
  const ExecutionBounds bounds_;
  std::optional<uint64_t> first_;
  std::optional<uint64_t> newest_;
  bool all_past_ = true;
};

}  // namespace neurontrace
