// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

// What is known of the order of things on different clocks: no effect comes before its cause.
namespace neurontrace {

// In ascending order of trust: of constraints that cannot all be true the least trusted goes first.
// What a collective is and who takes part in it is worked out from events that do not say it
// (collective_matcher.h), while a message or a call carries an id of its own, and what a host does
// around its device is one call in one process.
// Values are in reports: never change one.
enum class CausalClass : uint8_t {
  kReduce = 0,     // reduce, gather: each member enters before the root leaves
  kBroadcast = 1,  // broadcast, scatter: the root enters before any member leaves
  kBarrier = 2,  // barrier, all-reduce, all-gather, reduce-scatter, all-to-all: each member enters
                 // before any leaves
  kFlow = 3,     // a send begins before its receive ends
  kRpc = 4,      // a call leaves its client before it reaches its server, and back
  kBracket = 5,  // a host submits before its device begins, which ends before the host says so
};
inline constexpr size_t kCausalClassCount = 6;
constexpr size_t Index(CausalClass kind) { return static_cast<size_t>(kind); }
std::string_view CausalClassName(CausalClass kind);

// Differences and sums of a few times up to this one fit into 64 bits with a sign.
inline constexpr uint64_t kCausalTimeMaxNs = uint64_t{1} << 62;

// Something happened at `reference_ns` as the model of its clock has it.
struct CausalStamp {
  uint64_t reference_ns = 0;
  uint32_t clock = 0;  // index among the clocks of the pass
  // How far the stamp can be off against its clock: the bound of the device's model below a host's
  // clock, for example. Only bounds use it; what is shown is the stamp.
  uint32_t bound_ns = 0;
};

// Every cause happened before every effect (or at the same time). With n of each it stands for n *
// n differences and costs 2 n: it is the one virtual node that all causes precede and that precedes
// all effects.
struct CausalInstance {
  CausalClass kind = CausalClass::kBarrier;
  uint64_t group = 0;  // these two only name it in findings
  uint64_t sequence = 0;
};

// The constraints of one pass. One thread fills it, then any thread may read it.
class CausalInstances {
 public:
  struct Entry {
    CausalInstance instance;
    uint32_t first = 0;  // its stamps: causes, then effects
    uint32_t causes = 0;
    uint32_t effects = 0;
  };

  // INVALID_ARGUMENT without a cause or an effect, and for a time beyond 2^62 ns.
  // RESOURCE_EXHAUSTED beyond limits::kCausalStampsMax: leave it out and count it, as fewer
  // constraints are never wrong.
  absl::Status Add(const CausalInstance& instance, std::span<const CausalStamp> causes,
                   std::span<const CausalStamp> effects);

  size_t size() const { return entries_.size(); }
  size_t stamps() const { return stamps_.size(); }
  const Entry& operator[](size_t index) const { return entries_[index]; }
  std::span<const CausalStamp> Causes(const Entry& entry) const {
    return {stamps_.data() + entry.first, entry.causes};
  }
  std::span<const CausalStamp> Effects(const Entry& entry) const {
    return {stamps_.data() + entry.first + entry.causes, entry.effects};
  }

 private:
  std::vector<Entry> entries_;
  std::vector<CausalStamp> stamps_;
};

}  // namespace neurontrace
