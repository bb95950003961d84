// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/pods/pod_answer.h"
#include "agent/pods/pod_resources.grpc.pb.h"
#include "lib/base/mutex.h"
#include "lib/trace/pod_limits.h"

namespace neurontrace {

// Asks the kubelet of this node what its pods were given, at its pod-resources socket. Connects
// when it is asked, and again after the kubelet was started again. List waits for the answer and is
// for one thread at a time; Cancel is for any.
class KubeletClient {
 public:
  // `socket` is the path in the file system; a call may take `patience_ns`.
  explicit KubeletClient(const std::string& socket,
                         uint64_t patience_ns = limits::kPodResourcesPatienceNs);

  // UNAVAILABLE where nobody listens, DEADLINE_EXCEEDED where it takes too long,
  // RESOURCE_EXHAUSTED for an answer beyond a limit, and whatever the kubelet says.
  absl::StatusOr<PodAnswer> List();
  // Ends the call that is under way, and all that come, with CANCELLED.
  void Cancel();

 private:
  // Calls with a context that Cancel knows of.
  template <typename Call>
  absl::Status Ask(Call call);

  const std::string socket_;
  const uint64_t patience_ns_;
  const std::unique_ptr<::v1::PodResourcesLister::Stub> stub_;

  Mutex mutex_;
  grpc::ClientContext* context_ NT_GUARDED_BY(mutex_) = nullptr;  // of the call under way
  bool cancelled_ NT_GUARDED_BY(mutex_) = false;
};

}  // namespace neurontrace
