// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/order_checker.h"

#include <fmt/format.h>

#include <algorithm>

#include "aggregator/align/device/device_times.h"
#include "lib/trace/clock_limits.h"
#include "lib/trace/rank_evidence.h"

namespace neurontrace {
namespace {

// How a check is made: a reader collects the parts of each core, AddCore converts their times to
// the reference, and Check compares the members of each collective (collective_matcher.h). If there
// is too much, only every second, fourth ... execution is kept, by number, so that all cores keep
// the same ones. Nothing is concluded if the contradictions are too many to be clocks
// (BelongTogether).

// Returns the event type as a check names it.
std::string_view NameOf(DeviceEventType type) {
  return type == DeviceEventType::kBarrier ? "enc_barrier" : "cc_running";
}

double Microseconds(int64_t ns) { return static_cast<double>(ns) / 1e3; }

// If more than one in a hundred is impossible whatever the clocks are, these are not the same
// collectives or need not wait for each other. A few in a small number are tolerated.
bool BelongTogether(const OrderCheck& check) {
  if (check.beyond_bounds * 100 <= check.instances) return true;
  return check.beyond_bounds <= 10 && check.beyond_bounds * 2 <= check.instances;
}

// Returns the sentence for people; `reason` is why nothing was compared, empty if something was.
std::string DescribeCheck(const OrderCheck& check, const std::string& reason) {
  if (!reason.empty()) return fmt::format("{} could not be compared: {}", check.event_type, reason);
  if (!check.is_conclusive) {
    return fmt::format(
        "{} of {} {} contradict the clocks by more than their bounds explain, by up to {:.3f} us: "
        "either the cores of the job number executions differently, or not all of them wait for "
        "each other; the clocks cannot be judged",
        check.beyond_bounds, check.instances, check.event_type, Microseconds(check.worst_ns));
  }
  std::string words = fmt::format(
      "in {} of {} {} of several instances, one instance appears to leave before another enters",
      check.violated, check.instances, check.event_type);
  if (check.violated == 0) return words;
  words += fmt::format(", by up to {:.3f} us", Microseconds(check.worst_ns));
  if (check.beyond_bounds == 0) return words + ", which the clocks' bounds explain";
  return words +
         fmt::format("; {} of them by more than the clocks' bounds explain", check.beyond_bounds);
}

}  // namespace

// Converts a core's timestamps to the reference. Used for one core at a time.
struct OrderChecker::Times {
  DeviceTimes devices;
  ClockMapCursor realtime;
  uint32_t clock = 0;
  uint64_t core = 0;

  // `bound_ns` is the sum of the host's and the device's bound; `physical` is 0 if it has no
  // number.
  struct Time {
    uint64_t reference_ns = 0;
    uint64_t bound_ns = 0;
    uint64_t physical = 0;
  };
  // Returns nullopt if either clock is unknown there or its bound does not fit into 32 bits.
  std::optional<Time> At(const CollectivePart& part, const std::optional<uint64_t>& counter_ns,
                         uint64_t runtime_ns) {
    std::optional<DeviceTimes::HostTime> host = DeviceTimes::HostTime{runtime_ns, 0};
    if (part.type == DeviceEventType::kCollective) {
      // A collective is stamped by the device, a barrier by the host.
      if (!counter_ns) return std::nullopt;
      host = devices.Map({part.physical, {part.sequence, part.exec_id}}, *counter_ns, runtime_ns);
      if (!host) return std::nullopt;
    }
    const std::optional<uint64_t> bound_ns = realtime.ErrorBoundNs(host->host_ns);
    if (!bound_ns || *bound_ns > UINT32_MAX || host->bound_ns > UINT32_MAX) return std::nullopt;
    return Time{realtime.ToReference(host->host_ns), *bound_ns + host->bound_ns,
                host->physical.value_or(0)};
  }
};

CollectiveReader OrderChecker::ReaderForCore() const {
  return CollectiveReader(stride_, limits::kOrderEventsMax);
}

// The group is the operation and the sequence the execution: that is what the matcher compares by.
bool OrderChecker::AddPart(const CollectivePart& part, Times& times, CollectiveEvent& event) const {
  if (!classes_.Has(part.type) || part.operation > UINT32_MAX) return false;
  const auto enter = times.At(part, part.enter_counter_ns, part.enter_ns);
  const auto exit = times.At(part, part.exit_counter_ns, part.exit_ns);
  // Start and end must be of the same physical core to be one span.
  if (!enter || !exit || enter->physical != exit->physical) return false;
  const uint64_t bound_ns = std::max(enter->bound_ns, exit->bound_ns);
  if (bound_ns > UINT32_MAX) return false;
  event = {.clock = times.clock,
           .bound_ns = static_cast<uint32_t>(bound_ns),
           .group = part.operation,
           .sequence = part.exec_id,
           .member = times.core << 8 | (enter->physical & 0xff),
           .enter_ns = enter->reference_ns,
           .exit_ns = exit->reference_ns};
  return true;
}

// Never lowers the stride, because the executions that were dropped are gone.
void OrderChecker::Thin(uint64_t stride) {
  stride_ = std::max(stride_, stride);
  events_ = 0;
  for (auto& [key, group] : groups_) {
    std::erase_if(group.events,
                  [this](const CollectiveEvent& e) { return e.sequence % stride_ != 0; });
    events_ += group.events.size();
  }
}

// A core is compared within its job: by name, world size and type of event.
void OrderChecker::AddCore(const StreamRecord& stream, CollectiveReader& reader) {
  const uint64_t core = cores_++;
  const RankEvidence* rank = BestEvidence(stream.evidence);
  // Without evidence of its rank a core is counted but not compared (see Check).
  const int64_t world_size = rank == nullptr ? 0 : rank->world_size;
  const InstanceClock* clock = clocks_.Find(stream.identity.worker);
  // Events of a core without a clock count as left out.
  const ClockMap nothing;
  const bool is_known = clock != nullptr && !clock->model.segments.empty();
  Times times{.devices = {},
              .realtime = ClockMapCursor(is_known ? clock->realtime : nothing),
              .clock = is_known ? static_cast<uint32_t>(clock - clocks_.instances.data()) : 0,
              .core = core};
  times.devices.Begin(&clocks_.maps, stream.identity);
  // A core that was thinned further than the others determines what can be compared.
  if (reader.stride() > stride_) Thin(reader.stride());
  for (const CollectivePart& part : reader.Take()) {
    if (!classes_.Has(part.type) || part.exec_id % stride_ != 0) continue;
    Group& group = groups_[{stream.job, world_size, std::string(NameOf(part.type))}];
    ++group.seen;
    // Two cores with the same rank are of different jobs that look the same.
    if (rank != nullptr &&
        group.core_of.try_emplace(rank->worker_gid, core).first->second != core) {
      group.is_ambiguous = true;
    }
    CollectiveEvent event;
    // Omitted rather than guessed: a wrong time would be reported as a violation.
    if (!is_known || !AddPart(part, times, event)) {
      ++group.left_out;
      continue;
    }
    group.events.push_back(event);
    if (++events_ > limits::kOrderEventsMax) Thin(stride_ * 2);
  }
}

// Keeps the worst violations in a heap whose top is the smallest of them, so that memory stays
// limited.
void OrderChecker::Compare(Group& group, OrderCheck& check) const {
  // Counts every event as left out first; those that were compared are subtracted below.
  check.left_out += group.events.size();
  std::vector<OrderViolation>& worst = check.violations;
  const auto is_worse = [](const OrderViolation& a, const OrderViolation& b) {
    return a.amount_ns > b.amount_ns;
  };
  for (const std::span<const CollectiveEvent> members : MatchCollectives(group.events)) {
    ++check.instances;
    check.left_out -= members.size();
    const std::optional<EarlyExit> exit = FindEarlyExit(members);
    if (!exit) continue;
    ++check.violated;
    check.worst_ns = std::max(check.worst_ns, exit->amount_ns);
    if (!exit->is_within_bounds()) ++check.beyond_bounds;
    worst.push_back({.reference_ns = exit->left.exit_ns,
                     .amount_ns = exit->amount_ns,
                     .bound_ns = uint64_t{exit->entered.bound_ns} + exit->left.bound_ns,
                     .exec_id = exit->left.sequence,
                     .operation = exit->left.group,
                     .entered_by = clocks_.instances[exit->entered.clock].instance_id,
                     .left_by = clocks_.instances[exit->left.clock].instance_id});
    std::push_heap(worst.begin(), worst.end(), is_worse);  // the smallest on top
    if (worst.size() <= limits::kOrderViolationsShownMax) continue;
    std::pop_heap(worst.begin(), worst.end(), is_worse);
    worst.pop_back();
  }
  check.is_conclusive = check.instances > 0 && BelongTogether(check);
  // Examples from a comparison without conclusion would be read as proofs.
  if (!check.is_conclusive) worst.clear();
  std::sort(worst.begin(), worst.end(), [](const OrderViolation& a, const OrderViolation& b) {
    return std::tie(a.reference_ns, a.exec_id, a.operation) <
           std::tie(b.reference_ns, b.exec_id, b.operation);
  });
}

// A check always has an entry, also if nothing could be compared: then it says why.
OrderCheck OrderChecker::Check(const Key& key, Group& group) const {
  OrderCheck check;
  std::tie(check.job, check.world_size, check.event_type) = key;
  check.events = group.seen;
  check.left_out = group.left_out;
  std::string reason;
  if (check.world_size == 0) {
    reason = "it is unknown which cores are ranks of one job";
  } else if (group.is_ambiguous) {
    reason = fmt::format("several cores have the same rank of {} and none reports its job",
                         check.world_size);
    if (!check.job.empty()) {
      reason = fmt::format("several cores of job {} have the same rank", check.job);
    }
  } else {
    Compare(group, check);
    if (check.instances == 0) {
      reason = "no collective has a known time and the same number on several instances";
    }
  }
  // Nothing was compared, so every event is left out.
  if (!reason.empty()) check.left_out = check.events;
  check.words = DescribeCheck(check, reason);
  return check;
}

std::vector<OrderCheck> OrderChecker::Finish() {
  std::vector<OrderCheck> checks;
  for (auto& [key, group] : groups_) {
    if (std::get<1>(key) == 1) continue;  // a job of one core
    checks.push_back(Check(key, group));
  }
  return checks;
}

}  // namespace neurontrace
