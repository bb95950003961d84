// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/trace/ids.h"

namespace neurontrace {

// A core that a verdict concerns. A plain value.
struct VerdictCore {
  WorkerIdentity worker;
  int64_t worker_gid = -1;  // -1: unknown
};

// A verdict that has begun while the fleet runs. A plain value.
struct LiveVerdict {
  CaptureId capture;  // the watch
  std::string job;
  std::string kind;  // "slow-host", as VerdictKindName has it
  std::string text;  // one line for people
  std::vector<VerdictCore> suspects;
  // Other cores of the job that the suspects can be compared with, the best first; at most
  // limits::kWatchPeersMax.
  std::vector<VerdictCore> peers;
};

// Receives verdicts that begin. On the coordinator's sequence.
class VerdictObserver {
 public:
  virtual ~VerdictObserver() = default;
  virtual void OnVerdict(const LiveVerdict& verdict) = 0;
};

}  // namespace neurontrace
