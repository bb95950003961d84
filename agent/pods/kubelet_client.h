// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "agent/pods/pod_answer.h"
#include "agent/pods/pod_lister.h"
#include "agent/pods/pod_resources.grpc.pb.h"
#include "lib/base/mutex.h"
#include "lib/trace/pod_limits.h"

namespace neurontrace {

// Asks the kubelet of this node which devices its pods were given, over the gRPC service
// v1.PodResourcesLister at its pod-resources socket (kubernetes/kubelet,
// pkg/apis/podresources/v1/api.proto). Connects when it is asked, and again after the kubelet
// restarted. List blocks until the answer and is called by one thread at a time; Cancel may be
// called by any thread. The agent owns one if --pod-resources names the socket, and calls List on
// its pods thread.
class KubeletClient final : public PodLister {
 public:
  // `socket` is a path in the file system; each call may take up to `patience_ns`.
  explicit KubeletClient(const std::string& socket,
                         uint64_t patience_ns = limits::kPodResourcesPatienceNs);

  // PodLister. Fails with UNAVAILABLE if nobody listens, with DEADLINE_EXCEEDED if it takes too
  // long, with RESOURCE_EXHAUSTED for an answer beyond a limit, and otherwise with the kubelet's
  // own status. `cores_per_device` stays 0 if the kubelet does not list what the node can allocate.
  absl::StatusOr<PodAnswer> List() override;
  // Ends the call that is under way, and every later one, with CANCELLED. Does not wait for that.
  void Cancel();

 private:
  // Makes one call with a context that Cancel can reach. Fails with CANCELLED after Cancel, and
  // with the call's own status; the message names the socket.
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
