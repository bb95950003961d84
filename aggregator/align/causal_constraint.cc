// SPDX-License-Identifier: Apache-2.0
#include "aggregator/align/causal_constraint.h"

#include "base/status.h"
#include "trace/limits.h"

namespace neurontrace {
namespace {

absl::Status Check(std::span<const CausalStamp> stamps) {
  if (stamps.empty()) return InvalidArgument("causal constraint: no cause, or no effect");
  for (const CausalStamp& stamp : stamps) {
    if (stamp.reference_ns > kCausalTimeMaxNs) {
      return InvalidArgument("causal constraint: time {} is no time", stamp.reference_ns);
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view CausalClassName(CausalClass kind) {
  constexpr std::array<std::string_view, kCausalClassCount> kNames = {
      "reduce", "broadcast", "barrier", "flow", "rpc", "bracket"};
  return Index(kind) < kNames.size() ? kNames[Index(kind)] : "unknown";
}

absl::Status CausalInstances::Add(const CausalInstance& instance,
                                  std::span<const CausalStamp> causes,
                                  std::span<const CausalStamp> effects) {
  if (Index(instance.kind) >= kCausalClassCount) {
    return InvalidArgument("causal constraint: class {} is unknown", Index(instance.kind));
  }
  RETURN_IF_ERROR(Check(causes));
  RETURN_IF_ERROR(Check(effects));
  if (stamps_.size() + causes.size() + effects.size() > limits::kCausalStampsMax) {
    return ResourceExhausted("causal constraint: more than {} stamps in one pass",
                             limits::kCausalStampsMax);
  }
  entries_.push_back({.instance = instance,
                      .first = static_cast<uint32_t>(stamps_.size()),
                      .causes = static_cast<uint32_t>(causes.size()),
                      .effects = static_cast<uint32_t>(effects.size())});
  stamps_.insert(stamps_.end(), causes.begin(), causes.end());
  stamps_.insert(stamps_.end(), effects.begin(), effects.end());
  return absl::OkStatus();
}

}  // namespace neurontrace
