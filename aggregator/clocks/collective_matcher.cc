// SPDX-License-Identifier: Apache-2.0
#include "aggregator/clocks/collective_matcher.h"

#include <algorithm>
#include <tuple>

namespace neurontrace {
namespace {

// Matching sorts the events twice: by member, to find members whose times contradict their own
// numbers, and by collective, to group them. It takes n log n time in the events and no further
// memory than the spans.

// The keys after the first three make the order of a sort the same on every machine.
auto CollectiveKey(const CollectiveEvent& event) {
  return std::tuple(event.group, event.sequence, event.member, event.enter_ns, event.exit_ns,
                    event.clock);
}

// Orders the events of each member by sequence number.
auto MemberKey(const CollectiveEvent& event) {
  return std::tuple(event.group, event.member, event.sequence, event.enter_ns, event.exit_ns,
                    event.clock);
}

// Returns whether two events have the same group and sequence number.
bool AreOfOneCollective(const CollectiveEvent& a, const CollectiveEvent& b) {
  return a.group == b.group && a.sequence == b.sequence;
}

// Returns whether two events are of one member of one group.
bool AreOfOneMember(const CollectiveEvent& a, const CollectiveEvent& b) {
  return a.group == b.group && a.member == b.member;
}

// Returns whether a member entered earlier than it did with the number before, by the same clock.
bool GoesBack(const CollectiveEvent& before, const CollectiveEvent& event) {
  return event.clock == before.clock && event.enter_ns < before.enter_ns;
}

// Removes members whose times on one clock do not ascend with their numbers: their numbering is
// wrong.
void EraseUnordered(std::vector<CollectiveEvent>& events) {
  std::ranges::sort(events, {}, MemberKey);
  auto kept = events.begin();
  for (auto begin = events.begin(); begin != events.end();) {
    bool ascends = true;
    auto end = begin + 1;
    for (; end != events.end() && AreOfOneMember(end[-1], *end); ++end) {
      ascends = ascends && !GoesBack(end[-1], *end);
    }
    if (ascends) kept = std::move(begin, end, kept);
    begin = end;
  }
  events.erase(kept, events.end());
}

// Returns false if a member is listed twice, if all are on one clock, or if a time is too late.
// Requires members sorted by member.
bool CanBeCompared(std::span<const CollectiveEvent> members) {
  bool one_clock = true;
  for (size_t i = 0; i < members.size(); ++i) {
    if (i > 0 && members[i].member == members[i - 1].member) return false;
    if (members[i].exit_ns > kCollectiveTimeMaxNs) return false;
    one_clock = one_clock && members[i].clock == members.front().clock;
  }
  return !one_clock;
}

}  // namespace

std::vector<std::span<const CollectiveEvent>> MatchCollectives(
    std::vector<CollectiveEvent>& events) {
  // Broken events are removed first, so that they do not count as members.
  std::erase_if(events,
                [](const CollectiveEvent& event) { return event.exit_ns < event.enter_ns; });
  EraseUnordered(events);
  std::ranges::sort(events, {}, CollectiveKey);
  std::vector<std::span<const CollectiveEvent>> collectives;
  for (auto begin = events.begin(); begin != events.end();) {
    auto end = begin + 1;
    while (end != events.end() && AreOfOneCollective(*begin, *end)) ++end;
    const std::span<const CollectiveEvent> members(begin, end);
    if (CanBeCompared(members)) collectives.push_back(members);
    begin = end;
  }
  return collectives;
}

// Takes time linear in the members: the last to enter on each of two clocks suffices, because a
// member is only compared with other clocks.
std::optional<EarlyExit> FindEarlyExit(std::span<const CollectiveEvent> members) {
  // The last member to enter, and the last on any other clock than that one's.
  const CollectiveEvent* last = nullptr;
  const CollectiveEvent* other = nullptr;
  for (const CollectiveEvent& member : members) {
    if (last == nullptr || member.enter_ns > last->enter_ns) {
      if (last != nullptr && last->clock != member.clock) other = last;
      last = &member;
    } else if (member.clock != last->clock &&
               (other == nullptr || member.enter_ns > other->enter_ns)) {
      other = &member;
    }
  }
  std::optional<EarlyExit> widest;
  // Each member is compared with the last to enter on another clock.
  for (const CollectiveEvent& member : members) {
    const CollectiveEvent* entered = member.clock == last->clock ? other : last;
    if (entered == nullptr || entered->enter_ns <= member.exit_ns) continue;
    const auto amount_ns = static_cast<int64_t>(entered->enter_ns - member.exit_ns);
    if (!widest || amount_ns > widest->amount_ns) widest = EarlyExit{*entered, member, amount_ns};
  }
  return widest;
}

}  // namespace neurontrace
