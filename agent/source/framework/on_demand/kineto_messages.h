// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

// The datagrams of Kineto's daemon protocol (libkineto, IpcFabric and ConfigLoader), which PyTorch
// speaks with KINETO_USE_DAEMON=1. docs/operator/framework_on_demand.md has the layout. Pure
// functions, any thread.
namespace neurontrace {

// A size, and a type of 32 bytes.
inline constexpr size_t kKinetoHeaderBytes = 40;

// A worker asks for orders. A plain value.
struct KinetoRequest {
  // It would take an order to record activities now. False while its profiler is in use.
  bool takes_activities = false;
  int64_t job_id = 0;
  // The worker's own process id in its own namespace, then those of its ancestors: a claim.
  std::vector<int32_t> pids;
  friend bool operator==(const KinetoRequest&, const KinetoRequest&) = default;
};

// A worker introduces itself, once. A plain value; all of it is a claim.
struct KinetoContext {
  int32_t gpu = 0;
  int32_t pid = 0;
  int64_t job_id = 0;
  friend bool operator==(const KinetoContext&, const KinetoContext&) = default;
};

// Parses what a worker sent, of any content. Fails with INVALID_ARGUMENT if it is none of the two
// messages, or exceeds limits::kKinetoDatagramBytesMax or limits::kKinetoPidsMax.
absl::StatusOr<std::variant<KinetoRequest, KinetoContext>> ParseKinetoDatagram(
    std::string_view datagram);

// Returns the answer to a request: the text of a configuration, or an empty one for no order.
std::string KinetoAnswer(std::string_view config);
// Returns the answer to an introduction.
std::string KinetoContextAnswer();

}  // namespace neurontrace
