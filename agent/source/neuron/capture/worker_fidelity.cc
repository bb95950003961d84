// SPDX-License-Identifier: Apache-2.0
#include "agent/source/neuron/capture/worker_fidelity.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/trace/fidelity.h"

namespace neurontrace {
namespace {

// Returns the budget in the unit in which it was given, for people.
std::string DescribeBudget(const OverheadBudget& budget, bool for_bytes) {
  if (for_bytes) return fmt::format("{} bytes/s", budget.bytes_per_second);
  return fmt::format("{:g} % of a processor", budget.core_ppm / 10'000.0);
}

// Returns whether `text`, the payload of a TRACE_STARTED after its head, has exactly these names in
// this order, each followed by a NUL.
bool NamesAre(std::string_view text, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (text.substr(0, name.size()) != name || text.size() <= name.size()) return false;
    if (text[name.size()] != '\0') return false;
    text.remove_prefix(name.size() + 1);
  }
  return text.empty();
}

}  // namespace

WorkerFidelity::WorkerFidelity(const CapturePlan& plan)
    : plan_(plan),
      governor_({plan.spec.budget.core_ppm, plan.spec.budget.bytes_per_second}, kFidelityLevels) {}

bool WorkerFidelity::IsFor(const CaptureSpec& spec) {
  const bool streams = spec.mode == CaptureMode::kStream || spec.mode == CaptureMode::kContinuous;
  return streams && (spec.budget.core_ppm > 0 || spec.budget.bytes_per_second > 0);
}

// The types are known by the time that a trace runs. If others appear later, everything is reset.
void WorkerFidelity::UseTypes(std::span<const std::string> event_types) {
  if (types_seen_ && std::ranges::equal(*types_seen_, event_types)) return;
  types_seen_.emplace(event_types.begin(), event_types.end());
  levels_ = UsefulFidelityLevels(plan_.filter, event_types);
  governor_ = OverheadGovernor(governor_.budget(), static_cast<uint32_t>(levels_.size()));
  level_ = 0;
  begin_due_ = true;
}

// A token bucket of kRestartBurst that gains one each kRestartEveryNs.
void WorkerFidelity::EarnRestarts(uint64_t now_ns) {
  if (!restarts_at_ns_) restarts_at_ns_ = now_ns;
  const uint64_t earned = (now_ns - *restarts_at_ns_) / kRestartEveryNs;
  *restarts_at_ns_ += earned * kRestartEveryNs;
  restarts_ = static_cast<uint32_t>(std::min<uint64_t>(restarts_ + earned, kRestartBurst));
}

void WorkerFidelity::Decide(const Situation& situation) {
  if (begin_due_) {
    begin_due_ = false;
    governor_.Begin(situation.now_ns, situation.totals);
    return;
  }
  const auto decision = governor_.Observe(situation.now_ns, situation.totals);
  if (!decision) return;
  level_ = levels_[decision->step];
  cost_ = decision->cost;
  reason_ = !decision->lower_level ? kFidelityRoom
            : decision->for_bytes  ? kFidelityBytesBudget
                                   : kFidelityCoreBudget;
}

WorkerFidelity::Orders WorkerFidelity::Observe(const Situation& situation) {
  const uint64_t now_ns = situation.now_ns;
  if (!first_seen_ns_) first_seen_ns_ = now_ns;
  UseTypes(situation.facts.event_types);
  EarnRestarts(now_ns);
  // The tap may have lost the command with its connection.
  if (restart_sent_ns_ && now_ns - *restart_sent_ns_ >= kRestartPatienceNs) {
    restart_sent_ns_.reset();
    tap_level_.reset();
    begin_due_ = true;
  }
  // First which level the budget allows, then who omits its events, the runtime or the agent.
  Decide(situation);
  // One change at a time: until the restarted trace begins, what it omits is not known.
  if (restart_sent_ns_) return {};
  const bool by_runtime = situation.can_restart && !situation.facts.event_types.empty();
  const bool can_differ = tap_level_ || now_ns - *first_seen_ns_ >= kTakeOverTimeoutNs;
  if (by_runtime && can_differ && tap_level_ != level_ && restarts_ > 0) {
    --restarts_;
    restart_sent_ns_ = now_ns;
    asked_level_ = level_;
    return {.restart = true, .note = {}};
  }
  // A richer level needs the runtime if the runtime omits anything: the agent cannot restore
  // events.
  const bool by_agent = level_ > reported_level_ || tap_level_.value_or(0) <= level_;
  // A level that the agent can apply is in effect from the next record on, and is measured from
  // there.
  if (level_ == reported_level_ || !by_agent) return {};
  begin_due_ = true;
  return {.restart = false, .note = MakeNote(level_, situation.realtime_ns)};
}

FidelityNote WorkerFidelity::MakeNote(uint32_t level, uint64_t at_ns) {
  reported_level_ = level;
  poorest_ = level == 0 ? 0 : std::max(poorest_, level);
  FidelityNote note{.level = level, .reason = reason_, .cost = cost_, .at_ns = at_ns};
  if (level > 0) {
    note.words = fmt::format(
        "{}{}{}{} is used up", kOmittedBegin, LeftOutOfFidelity(poorest_), kOmittedReason,
        DescribeBudget(governor_.budget(),
                       governor_.budget().core_ppm == 0 || reason_ == kFidelityBytesBudget));
  }
  return note;
}

// Compares with the START that each level would have, as a trace record has no level.
std::optional<uint32_t> WorkerFidelity::LevelOf(const TapRecord& started,
                                                const WorkerFacts& facts) const {
  TapTraceStarted head = {};
  if (started.payload_bytes < sizeof head) return std::nullopt;
  std::memcpy(&head, started.payload, sizeof head);
  const std::string_view names(started.payload + sizeof head, started.payload_bytes - sizeof head);
  for (const uint32_t level : levels_) {
    const absl::StatusOr<TapStartOrder> order = MakeStartOrder(plan_, facts, level);
    if (order.ok() && static_cast<uint32_t>(order->rule) == head.event_rule &&
        NamesAre(names, order->names)) {
      return level;
    }
  }
  return std::nullopt;
}

std::optional<FidelityNote> WorkerFidelity::OnTraceStarted(const TapRecord& record,
                                                           const WorkerFacts& facts) {
  UseTypes(facts.event_types);
  const bool asked = restart_sent_ns_.has_value();
  restart_sent_ns_.reset();
  tap_level_ = asked ? asked_level_ : LevelOf(record, facts);
  begin_due_ = true;
  // The time without a trace is only known if the end of the one before was read.
  const uint64_t before_ns = std::exchange(stopped_ns_, 0);
  // What the trace omits is not recorded, even if less was to be omitted.
  const uint32_t level = std::max(level_, tap_level_.value_or(0));
  if (!asked && level == reported_level_) return std::nullopt;
  FidelityNote note = MakeNote(level, record.host_realtime_ns);
  if (before_ns != 0 && record.host_realtime_ns > before_ns) {
    note.unrecorded_ns = record.host_realtime_ns - before_ns;
  }
  return note;
}

void WorkerFidelity::OnReconnect() {
  restart_sent_ns_.reset();
  tap_level_.reset();
  first_seen_ns_.reset();
  begin_due_ = true;
}

}  // namespace neurontrace
