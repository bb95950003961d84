// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_belief.h"

#include <algorithm>
#include <numeric>

namespace neurontrace {
namespace {

// Wider than any bound, and far from where sums would overflow.
constexpr int64_t kAnywhere = int64_t{1} << 50;

// The least clock of each group of clocks that instances connect.
std::vector<uint32_t> GroupsOf(size_t clocks, const CausalInstances& instances,
                               const std::vector<bool>& taken) {
  std::vector<uint32_t> parent(clocks);
  std::iota(parent.begin(), parent.end(), 0);
  const auto find = [&parent](uint32_t clock) {
    while (parent[clock] != clock) clock = parent[clock] = parent[parent[clock]];
    return clock;
  };
  for (size_t i = 0; i < instances.size(); ++i) {
    if (!taken[i]) continue;
    const CausalInstances::Entry& entry = instances[i];
    uint32_t group = find(instances.Causes(entry).front().clock);
    for (const auto stamps : {instances.Causes(entry), instances.Effects(entry)}) {
      for (const CausalStamp& stamp : stamps) {
        const uint32_t other = find(stamp.clock);
        parent[std::max(group, other)] = std::min(group, other);
        group = std::min(group, other);
      }
    }
  }
  for (uint32_t clock = 0; clock < clocks; ++clock) parent[clock] = find(clock);
  return parent;
}

}  // namespace

CausalBeliefs::CausalBeliefs(const CausalLimitsPair& limits, const CausalGrid& grid,
                             const CausalInstances& instances, const std::vector<bool>& taken)
    : limits_(limits),
      grid_(grid),
      beliefs_(limits.hard.clocks()),
      group_of_(GroupsOf(beliefs_.size(), instances, taken)) {}

// By group, at the index of its least clock.
std::vector<bool> CausalBeliefs::GroupsAdrift() const {
  std::vector<bool> adrift(beliefs_.size(), true);
  for (size_t clock = 0; clock < beliefs_.size(); ++clock) {
    if (beliefs_[clock].place != Place::kByOthers) adrift[group_of_[clock]] = false;
  }
  return adrift;
}

CausalLimits CausalBeliefs::ForBounds() const {
  CausalLimits limits = limits_.likely;
  for (size_t clock = 0; clock < beliefs_.size(); ++clock) {
    for (size_t knot = 0; knot < grid_.knots(); ++knot) {
      if (beliefs_[clock].place != Place::kLikely) {
        limits.Bound(knot, clock) = limits_.hard.Bound(knot, clock);
      }
      if (!beliefs_[clock].slope && knot < grid_.epochs) {
        limits.Slope(knot, clock) = limits_.hard.Slope(knot, clock);
      }
    }
  }
  return limits;
}

CausalLimits CausalBeliefs::ForCurves() const {
  CausalLimits limits = ForBounds();
  const std::vector<bool> adrift = GroupsAdrift();
  for (size_t clock = 0; clock < beliefs_.size(); ++clock) {
    if (beliefs_[clock].place != Place::kByOthers) continue;
    // Of a group adrift one clock stays, and the others find their places by it.
    const bool stays = group_of_[clock] == clock && adrift[clock];
    for (size_t knot = 0; knot < grid_.knots(); ++knot) {
      limits.Bound(knot, clock) = stays ? 0 : kAnywhere;
    }
  }
  return limits;
}

void CausalBeliefs::DoubtImpossible(const CausalSolver& hard) {
  for (size_t knot = 0; knot < grid_.knots(); ++knot) {
    for (size_t clock = 0; clock < beliefs_.size(); ++clock) {
      if (beliefs_[clock].place != Place::kLikely) continue;
      const int64_t likely = limits_.likely.Bound(knot, clock);
      if (hard.Low(knot, clock) <= likely && hard.High(knot, clock) >= -likely) continue;
      beliefs_[clock].place = Place::kByOthers;
    }
  }
  DoubtWithMost();
}

void CausalBeliefs::DoubtMostBlamed(const std::vector<CausalCycle>& cycles) {
  std::vector<uint32_t> places(beliefs_.size(), 0);
  std::vector<uint32_t> slopes(beliefs_.size(), 0);
  uint32_t most = 0;
  for (const CausalCycle& cycle : cycles) {
    for (const CausalStep& step : cycle.steps) {
      if (step.kind == CausalStep::Kind::kConstraint) continue;
      const uint32_t clock = step.from == CausalStep::kReference ? step.to : step.from;
      const Belief& belief = beliefs_[clock];
      const bool is_slope = step.kind == CausalStep::Kind::kSlope;
      if (is_slope ? !belief.slope : belief.place != Place::kLikely) continue;
      most = std::max(most, ++(is_slope ? slopes : places)[clock]);
    }
  }
  for (size_t clock = 0; clock < beliefs_.size(); ++clock) {
    if (places[clock] > 0 && places[clock] * 2 >= most) beliefs_[clock].place = Place::kByOthers;
    if (slopes[clock] > 0 && slopes[clock] * 2 >= most) beliefs_[clock].slope = false;
  }
  DoubtWithMost();
}

// Where most paths are not symmetric, the others only have not been found out.
void CausalBeliefs::DoubtWithMost() {
  std::vector<uint32_t> members(beliefs_.size(), 0);
  std::vector<uint32_t> doubted(beliefs_.size(), 0);
  for (size_t clock = 0; clock < beliefs_.size(); ++clock) {
    ++members[group_of_[clock]];
    if (beliefs_[clock].place != Place::kLikely) ++doubted[group_of_[clock]];
  }
  for (size_t clock = 0; clock < beliefs_.size(); ++clock) {
    const uint32_t group = group_of_[clock];
    if (doubted[group] * 2 < members[group] || beliefs_[clock].place != Place::kLikely) continue;
    beliefs_[clock].place = Place::kByOthers;
  }
}

void CausalBeliefs::DoubtAll() {
  for (Belief& belief : beliefs_) {
    if (belief.place == Place::kLikely) belief.place = Place::kByOthers;
    belief.slope = false;
  }
}

// How much further up each group can be.
std::vector<CausalBeliefs::Room> CausalBeliefs::Rooms(const CausalCorrections& corrections) const {
  std::vector<Room> rooms(beliefs_.size());
  for (size_t clock = 0; clock < beliefs_.size(); ++clock) {
    Room& room = rooms[group_of_[clock]];
    for (size_t knot = 0; knot < grid_.knots(); ++knot) {
      const int64_t bound = limits_.hard.Bound(knot, clock);
      const int64_t shift = corrections.At(knot, clock).shift_ns;
      room.least = std::max(room.least, -bound - shift);
      room.most = std::min(room.most, bound - shift);
    }
  }
  return rooms;
}

bool CausalBeliefs::Settle(CausalCorrections& corrections) {
  const std::vector<bool> adrift = GroupsAdrift();
  const std::vector<Room> rooms = Rooms(corrections);
  std::vector<bool> outside(beliefs_.size(), false);  // by group
  for (size_t clock = 0; clock < beliefs_.size(); ++clock) {
    if (beliefs_[clock].place != Place::kByOthers) continue;
    const Room& room = rooms[group_of_[clock]];
    const bool moves = adrift[group_of_[clock]] && room.least <= room.most;
    const int64_t by = moves ? room.least + (room.most - room.least) / 2 : 0;
    for (size_t knot = 0; knot < grid_.knots(); ++knot) {
      int64_t& shift = corrections.At(knot, clock).shift_ns;
      shift += by;
      const int64_t bound = limits_.hard.Bound(knot, clock);
      if (shift < -bound || shift > bound) outside[group_of_[clock]] = true;
    }
  }
  bool settled = true;
  for (size_t clock = 0; clock < beliefs_.size(); ++clock) {
    const uint32_t group = group_of_[clock];
    if (!outside[group]) continue;
    settled = false;
    Place& place = beliefs_[clock].place;
    if (adrift[group]) {
      place = Place::kWithinBounds;
    } else if (place == Place::kLikely) {
      place = Place::kByOthers;
    }
  }
  return settled;
}

uint64_t CausalBeliefs::doubted() const {
  return static_cast<uint64_t>(std::count_if(
      beliefs_.begin(), beliefs_.end(),
      [](const Belief& belief) { return belief.place != Place::kLikely || !belief.slope; }));
}

}  // namespace neurontrace
