// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include "absl/status/status.h"
#include "lib/wire/call_admission.h"
#include "lib/wire/grpc_status.h"

namespace neurontrace {

// Returns the decision of `admission` about the peer of this call; OK if `admission` is null.
// Called at the beginning of every call of an agent.
inline absl::Status Admitted(CallAdmission* admission, const grpc::ServerContextBase& context) {
  return admission == nullptr ? absl::OkStatus() : admission->AdmitAgent(context.peer());
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
