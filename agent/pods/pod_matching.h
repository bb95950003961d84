// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "agent/pods/pod_answer.h"

namespace neurontrace {

// Whose devices these are.
struct PodMatch {
  std::optional<WorkerPod> pod;  // without a container where several of one pod can be meant
  bool ambiguous = false;        // several pods can be
};

// The pod that was given all of `devices`, the open ones of a process; a device belongs to whoever
// was given one of its cores. Nothing for no devices. Pure.
PodMatch MatchPod(const PodAnswer& answer, const std::set<uint32_t>& devices);

}  // namespace neurontrace
