// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/neuron/capture/fidelity_note.h"
#include "agent/source/neuron/capture/overhead_governor.h"
#include "agent/source/neuron/capture/tap_orders.h"
#include "agent/source/neuron/tap/tap_buffer_reader.h"

namespace neurontrace {

// Keeps one worker's part in a capture within the capture's budget: decides the level of fidelity,
// and whether the runtime or the agent omits events. The runtime does if its trace can be
// restarted, which saves the tap's time too. A restart costs a drain of all rings and a moment
// without a trace, so it happens at most kRestartBurst times in a row and then every
// kRestartEveryNs; meanwhile the agent drops events after reading them. Time is passed in, in
// monotonic ns. On the agent's sequence.
class WorkerFidelity {
 public:
  static constexpr uint64_t kRestartEveryNs = 5'000'000'000;
  static constexpr uint32_t kRestartBurst = 5;
  // A trace that was ordered to restart and did not is assumed to run unchanged.
  static constexpr uint64_t kRestartPatienceNs = 10'000'000'000;
  // An agent that took over a trace finds the record of its start within this time, or restarts it.
  static constexpr uint64_t kTakeOverTimeoutNs = 2'000'000'000;

  // `plan` outlives it.
  explicit WorkerFidelity(const CapturePlan& plan);
  // Returns whether the capture has a budget; only captures that stream for long do.
  static bool IsFor(const CaptureSpec& spec);

  // Returns the level that START requests.
  uint32_t level() const { return level_; }
  // Returns the level in effect, as the streams record it.
  uint32_t reported_level() const { return reported_level_; }

  struct Situation {
    uint64_t now_ns = 0;
    uint64_t realtime_ns = 0;
    OverheadTotals totals;
    const WorkerFacts& facts;
    // Whether the trace runs and the tap can receive the commands.
    bool can_restart = false;
  };
  struct Orders {
    // Whether the trace is to be restarted at level().
    bool restart = false;
    // The note to record: from the next record on, the agent omits what it names.
    std::optional<FidelityNote> note;
  };
  // Returns what is to be done. To be called a few times a second while it records.
  Orders Observe(const Situation& situation);

  // Take the records of the trace. The first returns the note to be recorded there, if there is
  // one.
  std::optional<FidelityNote> OnTraceStarted(const TapRecord& record, const WorkerFacts& facts);
  void OnTraceStopped(const TapRecord& record) { stopped_ns_ = record.host_realtime_ns; }
  // The connection is new: what the tap runs is not known.
  void OnReconnect();

 private:
  // Resets the levels and the governor if the runtime lists another number of event types than
  // before.
  void UseTypes(std::span<const std::string> event_types);
  // Sets level_ by what the governor decides.
  void Decide(const Situation& situation);
  // Grants the restarts that are due since the last call.
  void EarnRestarts(uint64_t now_ns);
  // Returns the level of a trace by the names of its start; nothing if it is that of no level.
  std::optional<uint32_t> LevelOf(const TapRecord& started, const WorkerFacts& facts) const;
  // Makes `level` the level in effect and returns the note about it.
  FidelityNote MakeNote(uint32_t level, uint64_t at_ns);

  const CapturePlan& plan_;
  OverheadGovernor governor_;
  // The useful levels, by the governor's step.
  std::vector<uint32_t> levels_ = {0};
  // The event types that `levels_` were made for; nothing before the first.
  std::optional<std::vector<std::string>> types_seen_;

  // The level that the governor wants.
  uint32_t level_ = 0;
  // The level that the streams have a note about; 0 without one.
  uint32_t reported_level_ = 0;
  // The level at which the running trace was started, where it is known.
  std::optional<uint32_t> tap_level_;
  std::string_view reason_ = kFidelityTakenOver;
  OverheadCost cost_;
  // The poorest level since level 0, which the certificate names.
  uint32_t poorest_ = 0;
  // The governor's measurement begins with the next Observe.
  bool begin_due_ = true;

  uint32_t restarts_ = kRestartBurst;
  // Up to when restarts were granted, monotonic.
  std::optional<uint64_t> restarts_at_ns_;
  // When a restart was ordered that no record has confirmed yet, and its level.
  std::optional<uint64_t> restart_sent_ns_;
  uint32_t asked_level_ = 0;
  // When Observe was first called on this connection, monotonic.
  std::optional<uint64_t> first_seen_ns_;
  // When the last trace stopped, realtime; 0: not since the running one started.
  uint64_t stopped_ns_ = 0;
};

}  // namespace neurontrace
