// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "lib/wire/grpc_status.h"

namespace neurontrace {

// Returns whether a call from this address, as gRPC names it, may start; the error says when to try
// again. Any thread. Empty: every call may.
using AdmitCall = std::function<absl::Status(const std::string& peer)>;

// Returns the decision of `admit` about the peer of this call; OK if `admit` is empty. Called at
// the beginning of every call of an agent.
inline absl::Status Admitted(const AdmitCall& admit, const grpc::ServerContextBase& context) {
  return admit ? admit(context.peer()) : absl::OkStatus();
}

// A call that ends with an error before it starts. Deletes itself in OnDone.
template <typename Request, typename Response>
class RefusedCall final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  // Ends the call with `why` as its status. gRPC allows Finish in the constructor, before any read.
  explicit RefusedCall(const absl::Status& why) { this->Finish(ToGrpcStatus(why)); }
  // The last callback of gRPC for a call.
  void OnDone() override { delete this; }
};

}  // namespace neurontrace
