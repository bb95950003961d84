// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_matcher.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace neurontrace {
namespace {

// What follows the first two makes the order of a sort the same on every machine.
auto InstanceKey(const CausalEvent& event) {
  return std::tuple(event.group, event.sequence, event.member, event.role, event.enter_ns,
                    event.exit_ns, event.clock, event.kind);
}

auto MemberKey(const CausalEvent& event) {
  return std::tuple(event.group, event.member, event.sequence, event.enter_ns);
}

class Matcher {
 public:
  explicit Matcher(std::span<const CausalEvent> events) : events_(events) {}

  CausalMatches Match() {
    matches_.events = events_.size();
    std::vector<uint32_t> order = Sound();
    std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
      return InstanceKey(events_[a]) < InstanceKey(events_[b]);
    });
    for (size_t begin = 0; begin < order.size();) {
      size_t end = begin + 1;
      while (end < order.size() && AreOfOneInstance(order[begin], order[end])) ++end;
      AddInstance(std::span(order).subspan(begin, end - begin));
      begin = end;
    }
    return std::move(matches_);
  }

 private:
  bool AreOfOneInstance(uint32_t a, uint32_t b) const {
    return events_[a].group == events_[b].group && events_[a].sequence == events_[b].sequence;
  }

  // Events of members whose numbers go with their own time, on the one clock that they have.
  std::vector<uint32_t> Sound() {
    std::vector<uint32_t> order(events_.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [this](uint32_t i) {
      const bool reversed = events_[i].exit_ns < events_[i].enter_ns;
      matches_.reversed += reversed ? 1 : 0;
      return reversed;
    });
    std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
      return std::tuple(MemberKey(events_[a]), InstanceKey(events_[a])) <
             std::tuple(MemberKey(events_[b]), InstanceKey(events_[b]));
    });
    std::vector<uint32_t> sound;
    sound.reserve(order.size());
    for (size_t begin = 0; begin < order.size();) {
      bool ascends = true;
      size_t end = begin + 1;
      for (; end < order.size(); ++end) {
        const CausalEvent& before = events_[order[end - 1]];
        const CausalEvent& event = events_[order[end]];
        if (event.group != before.group || event.member != before.member) break;
        if (event.clock == before.clock && event.enter_ns < before.enter_ns) ascends = false;
      }
      if (ascends) {
        sound.insert(sound.end(), order.begin() + static_cast<ptrdiff_t>(begin),
                     order.begin() + static_cast<ptrdiff_t>(end));
      } else {
        matches_.unordered += end - begin;
      }
      begin = end;
    }
    return sound;
  }

  // Which count its events go to if it is left out; nullptr: it is not.
  uint64_t* ReasonAgainst(std::span<const uint32_t> members) {
    const CausalEvent& first = events_[members.front()];
    size_t causes = 0;
    size_t effects = 0;
    bool one_clock = true;
    for (size_t i = 0; i < members.size(); ++i) {
      const CausalEvent& event = events_[members[i]];
      if (i > 0 && event.member == events_[members[i - 1]].member) return &matches_.repeated;
      if (event.kind != first.kind) return &matches_.mixed;
      if ((event.role == CausalRole::kBoth) != (event.kind == CausalClass::kBarrier)) {
        return &matches_.mixed;
      }
      causes += event.role != CausalRole::kEffect ? 1 : 0;
      effects += event.role != CausalRole::kCause ? 1 : 0;
      one_clock = one_clock && event.clock == first.clock;
    }
    if (causes == 0 || effects == 0 || one_clock) return &matches_.alone;
    const bool one_root = first.kind == CausalClass::kBarrier ||
                          (first.kind == CausalClass::kReduce ? effects : causes) == 1;
    return one_root ? nullptr : &matches_.mixed;
  }

  void AddInstance(std::span<const uint32_t> members) {
    uint64_t* against = ReasonAgainst(members);
    if (against == nullptr) {
      causes_.clear();
      effects_.clear();
      for (const uint32_t i : members) {
        const CausalEvent& event = events_[i];
        if (event.role != CausalRole::kEffect) {
          causes_.push_back({event.enter_ns, event.clock, event.stamp_bound_ns});
        }
        if (event.role != CausalRole::kCause) {
          effects_.push_back({event.exit_ns, event.clock, event.stamp_bound_ns});
        }
      }
      const CausalEvent& first = events_[members.front()];
      const absl::Status added = matches_.instances.Add(
          {.kind = first.kind, .group = first.group, .sequence = first.sequence}, causes_,
          effects_);
      if (added.ok()) return;
      against = absl::IsResourceExhausted(added) ? &matches_.over_limit : &matches_.mixed;
    }
    *against += members.size();
    ++matches_.instances_left_out;
  }

  const std::span<const CausalEvent> events_;
  CausalMatches matches_;
  std::vector<CausalStamp> causes_;
  std::vector<CausalStamp> effects_;
};

}  // namespace

CausalMatches MatchCausalEvents(std::span<const CausalEvent> events) {
  return Matcher(events).Match();
}

}  // namespace neurontrace
