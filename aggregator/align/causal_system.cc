// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_system.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace neurontrace {
namespace {

// A constraint with so few pairs for its stamps is taken apart into them.
constexpr size_t kPairsPerTermMax = 4;
// Further away than this in epochs, what the clocks did in between is not added up: such a stamp
// constrains nothing worth having.
constexpr size_t kEpochsAwayMax = 64;
constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
// A stamp passes through two maps of integers, each end of a constraint may lose 3 ns in them.
constexpr int64_t kSystemRoundingNs = 6;

// The moment of an instance around which all else is counted: after its last cause all effects may
// happen.
uint64_t MomentOf(const CausalInstances& instances, uint32_t instance) {
  uint64_t last = 0;
  for (const CausalStamp& stamp : instances.Causes(instances[instance])) {
    last = std::max(last, stamp.reference_ns);
  }
  return last;
}

}  // namespace

struct CausalSystem::Gathered {
  explicit Gathered(size_t clocks) : cause_at(clocks, 0), effect_at(clocks, 0) {}
  std::vector<CausalCell::Term> causes;
  std::vector<CausalCell::Term> effects;
  // By clock: 1 + its place in the vector above, if that one is of this clock.
  std::vector<uint32_t> cause_at;
  std::vector<uint32_t> effect_at;

  static CausalCell::Term* Find(std::vector<CausalCell::Term>& terms,
                                const std::vector<uint32_t>& at, uint32_t clock) {
    const uint32_t place = at[clock];
    if (place == 0 || place > terms.size() || terms[place - 1].clock != clock) return nullptr;
    return &terms[place - 1];
  }
  void AddCause(uint32_t clock, int64_t time_ns) {
    if (CausalCell::Term* term = Find(causes, cause_at, clock)) {
      term->time_ns = std::max(term->time_ns, time_ns);
      return;
    }
    causes.push_back({clock, time_ns});
    cause_at[clock] = static_cast<uint32_t>(causes.size());
  }
  void AddEffect(uint32_t clock, int64_t time_ns) {
    if (CausalCell::Term* term = Find(effects, effect_at, clock)) {
      term->time_ns = std::min(term->time_ns, time_ns);
      return;
    }
    effects.push_back({clock, time_ns});
    effect_at[clock] = static_cast<uint32_t>(effects.size());
  }
};

namespace {

class CellBuilder {
 public:
  explicit CellBuilder(CausalCell& cell) : cell_(cell) { cell_ = {}; }

  void Add(uint32_t instance, std::span<const CausalCell::Term> causes,
           std::span<const CausalCell::Term> effects) {
    if (causes.empty() || effects.empty()) return;
    if (causes.size() * effects.size() <= kPairsPerTermMax * (causes.size() + effects.size())) {
      for (const CausalCell::Term& cause : causes) {
        for (const CausalCell::Term& effect : effects) AddPair(instance, cause, effect);
      }
      return;
    }
    Begin(instance);
    cell_.causes.insert(cell_.causes.end(), causes.begin(), causes.end());
    cell_.effects.insert(cell_.effects.end(), effects.begin(), effects.end());
  }

  void Finish() {
    // Along a chain of clocks, whichever way it goes, one reading of the pairs in this order or in
    // reverse takes a bound from one end to the other (Yen's order).
    std::sort(pairs_.begin(), pairs_.end(), [](const Pair& a, const Pair& b) {
      return std::pair(a.effect, a.cause) < std::pair(b.effect, b.cause);
    });
    for (const Pair& pair : pairs_) {
      Begin(pair.instance);
      cell_.causes.push_back({pair.cause, 0});
      cell_.effects.push_back({pair.effect, pair.weight_ns});
    }
    Begin(0);
    cell_.constraints.shrink_to_fit();
    cell_.causes.shrink_to_fit();
    cell_.effects.shrink_to_fit();
  }

 private:
  struct Pair {
    uint32_t cause;
    uint32_t effect;
    uint32_t instance;
    int64_t weight_ns;
  };

  void Begin(uint32_t instance) {
    cell_.constraints.push_back({static_cast<uint32_t>(cell_.causes.size()),
                                 static_cast<uint32_t>(cell_.effects.size()), instance});
  }
  void AddPair(uint32_t instance, const CausalCell::Term& cause, const CausalCell::Term& effect) {
    if (cause.clock == effect.clock) return;
    const uint64_t key = uint64_t{cause.clock} << 32 | effect.clock;
    const int64_t weight = effect.time_ns - cause.time_ns;
    const auto [it, is_new] = pair_at_.try_emplace(key, pairs_.size());
    if (is_new) {
      pairs_.push_back({cause.clock, effect.clock, instance, weight});
      return;
    }
    Pair& pair = pairs_[it->second];
    if (weight < pair.weight_ns) {
      pair.weight_ns = weight;
      pair.instance = instance;
    }
  }

  CausalCell& cell_;
  std::vector<Pair> pairs_;
  absl::flat_hash_map<uint64_t, size_t> pair_at_;
};

}  // namespace

CausalSystem::CausalSystem(const CausalInstances& instances, const CausalSelection& selection,
                           const CausalLimits& limits, const CausalGrid& grid,
                           CausalPurpose purpose)
    : instances_(instances),
      selection_(selection),
      limits_(limits),
      grid_(grid),
      purpose_(purpose),
      cells_(purpose == CausalPurpose::kBounds ? grid.knots() : grid.epochs),
      cell_begin_(cells_.size() + 1, 0) {
  std::vector<uint32_t> cell_of(instances.size(), 0);
  for (uint32_t i = 0; i < instances.size(); ++i) {
    if (!selection.taken[i]) continue;
    cell_of[i] = static_cast<uint32_t>(CellOf(i));
    ++cell_begin_[cell_of[i] + 1];
  }
  for (size_t c = 0; c < cells_.size(); ++c) cell_begin_[c + 1] += cell_begin_[c];
  order_.resize(cell_begin_.back());
  std::vector<uint32_t> next(cell_begin_.begin(), cell_begin_.end() - 1);
  for (uint32_t i = 0; i < instances.size(); ++i) {
    if (selection.taken[i]) order_[next[cell_of[i]]++] = i;
  }
  Gathered gathered(limits.clocks());
  for (size_t c = 0; c < cells_.size(); ++c) BuildCell(c, gathered);
}

size_t CausalSystem::CellOf(uint32_t instance) const {
  const uint64_t moment = MomentOf(instances_, instance);
  return purpose_ == CausalPurpose::kBounds ? grid_.NearestKnot(moment) : grid_.EpochOf(moment);
}

size_t CausalSystem::CellsAt(size_t knot) const {
  if (purpose_ == CausalPurpose::kBounds) return 1;
  return (knot > 0 ? 1 : 0) + (knot < grid_.epochs ? 1 : 0);
}

size_t CausalSystem::CellIndex(size_t knot, size_t which) const {
  if (purpose_ == CausalPurpose::kBounds) return knot;
  return knot == 0 ? 0 : knot - 1 + which;
}

uint64_t CausalSystem::OriginOf(size_t cell) const { return grid_.KnotNs(cell); }

void CausalSystem::Rebuild(size_t cell) {
  Gathered gathered(limits_.clocks());
  BuildCell(cell, gathered);
}

int64_t CausalSystem::Movement(uint32_t clock, uint64_t from_ns, uint64_t to_ns) const {
  if (from_ns > to_ns) std::swap(from_ns, to_ns);
  const size_t first = grid_.EpochOf(from_ns);
  const size_t last = grid_.EpochOf(to_ns);
  if (last - first > kEpochsAwayMax) return kFar;
  const auto part = [this, clock](size_t epoch, uint64_t length_ns) {
    const auto slope = static_cast<uint64_t>(limits_.Slope(epoch, clock));
    if ((slope | length_ns) >> 31 == 0) {
      return static_cast<int64_t>((slope * length_ns + grid_.epoch_ns - 1) / grid_.epoch_ns);
    }
    return static_cast<int64_t>(
        (static_cast<unsigned __int128>(slope) * length_ns + grid_.epoch_ns - 1) / grid_.epoch_ns);
  };
  if (first == last) return part(first, to_ns - from_ns);
  int64_t movement =
      part(first, grid_.KnotNs(first + 1) - from_ns) + part(last, to_ns - grid_.KnotNs(last));
  for (size_t epoch = first + 1; epoch < last; ++epoch) movement += limits_.Slope(epoch, clock);
  return movement;
}

void CausalSystem::Gather(uint32_t instance, size_t cell, Gathered& into) const {
  into.causes.clear();
  into.effects.clear();
  const bool bounds = purpose_ == CausalPurpose::kBounds;
  const uint64_t moment = bounds ? grid_.KnotNs(cell) : MomentOf(instances_, instance);
  const uint64_t origin = OriginOf(cell);
  const CausalInstances::Entry& entry = instances_[instance];
  for (const CausalStamp& stamp : instances_.Causes(entry)) {
    const int64_t movement = Movement(stamp.clock, stamp.reference_ns, moment);
    if (movement == kFar) continue;
    const auto time = static_cast<int64_t>(stamp.reference_ns - origin);
    into.AddCause(stamp.clock,
                  bounds ? time - movement - int64_t{stamp.bound_ns} : time + movement);
  }
  const int64_t margin =
      kSystemRoundingNs +
      (selection_.margin_ns.empty() ? 0 : int64_t{selection_.margin_ns[instance]});
  for (const CausalStamp& stamp : instances_.Effects(entry)) {
    const int64_t movement = Movement(stamp.clock, stamp.reference_ns, moment);
    if (movement == kFar) continue;
    const auto time = static_cast<int64_t>(stamp.reference_ns - origin);
    into.AddEffect(stamp.clock,
                   bounds ? time + movement + int64_t{stamp.bound_ns} : time - movement - margin);
  }
}

void CausalSystem::BuildCell(size_t cell, Gathered& gathered) {
  CellBuilder builder(cells_[cell]);
  for (uint32_t at = cell_begin_[cell]; at < cell_begin_[cell + 1]; ++at) {
    const uint32_t instance = order_[at];
    if (!selection_.taken[instance]) continue;
    Gather(instance, cell, gathered);
    builder.Add(instance, gathered.causes, gathered.effects);
  }
  builder.Finish();
}

}  // namespace neurontrace
