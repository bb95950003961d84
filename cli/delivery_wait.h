// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <tuple>

#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace::cli {

// Reports which instances a stopping capture waits for. Such a wait takes minutes if an agent is
// connected but cannot deliver. Times are those of the aggregator's clock. Used by CaptureWatch on
// one thread.
class DeliveryWait {
 public:
  // Returns whether Report should be called: the capture has been stopping for 10 s, and 10 s have
  // passed since the last call. A wait for a store that takes no data is reported elsewhere.
  bool IsDue(const v1::Capture& capture) const;

  // Returns a line that names up to eight instances whose agents have not delivered everything, why
  // as far as it is known, and the events that are not stored; empty if it would name the same ones
  // for the same reasons as the last line. `capture` has the agents of its certificate; without
  // them the states of its workers decide.
  std::string Report(const v1::Capture& capture);

  // Returns whether Report has returned a line.
  bool has_reported() const { return !reported_.empty(); }

 private:
  // Instance, whether its agent is disconnected, and since when.
  using Awaited = std::set<std::tuple<std::string, bool, uint64_t>>;
  static Awaited AwaitedOf(const v1::Capture& capture);

  uint64_t checked_ns_ = 0;  // 0: never
  Awaited reported_;
};

}  // namespace neurontrace::cli
