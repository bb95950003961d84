// SPDX-License-Identifier: Apache-2.0
#include "agent/pods/kubelet_client.h"

#include <algorithm>
#include <chrono>

#include "lib/base/clean_text.h"
#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// The longest pause between two attempts to connect.
constexpr int kReconnectMaxMs = 1'000;

// Returns a channel that connects with the first call. The answer's size is limited, as the
// kubelet's list grows with all pods of the node.
std::shared_ptr<grpc::Channel> MakeUnixChannel(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limits::kPodResourcesBytesMax));
  // A kubelet that restarted listens on a new socket, so gRPC must not back off for long.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMaxMs);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(limits::kDetailBytesMax) * 16);
  // A proxy of the environment would never reach a socket of this node.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

KubeletClient::KubeletClient(const std::string& socket, uint64_t patience_ns)
    : socket_(socket),
      patience_ns_(patience_ns),
      stub_(::v1::PodResourcesLister::NewStub(MakeUnixChannel(socket))) {}

template <typename Call>
absl::Status KubeletClient::Ask(Call call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::nanoseconds(patience_ns_));
  {
    const MutexLock lock(mutex_);
    if (cancelled_) return absl::CancelledError("the agent is shutting down");
    // Registered under the lock that Cancel takes, so that no call is missed between the check and
    // here.
    context_ = &context;
  }
  const grpc::Status status = call(&context);
  const MutexLock lock(mutex_);
  context_ = nullptr;
  if (status.ok()) return absl::OkStatus();
  return {static_cast<absl::StatusCode>(status.error_code()),
          socket_ + ": " + CleanText(status.error_message(), limits::kDetailBytesMax)};
}

absl::StatusOr<PodAnswer> KubeletClient::List() {
  ::v1::ListPodResourcesResponse listed;
  RETURN_IF_ERROR(Ask([this, &listed](grpc::ClientContext* context) {
    return stub_->List(context, ::v1::ListPodResourcesRequest(), &listed);
  }));
  // The second call is made only if cores were given out, since whole devices need no ratio.
  ASSIGN_OR_RETURN(PodAnswer answer, ReadPodAnswer(listed));
  const bool has_cores =
      std::any_of(answer.containers.begin(), answer.containers.end(),
                  [](const auto& container) { return !container.cores.empty(); });
  if (!has_cores) return answer;
  // A kubelet before 1.23 does not have this call, or has it switched off, which it reports as
  // UNKNOWN. Devices can be matched without it; cores cannot.
  ::v1::AllocatableResourcesResponse allocatable;
  const absl::Status status = Ask([this, &allocatable](grpc::ClientContext* context) {
    return stub_->GetAllocatableResources(context, ::v1::AllocatableResourcesRequest(),
                                          &allocatable);
  });
  if (status.ok()) {
    answer.cores_per_device = CoresPerDevice(allocatable);
  } else if (!absl::IsUnimplemented(status) && !absl::IsUnknown(status)) {
    return status;
  }
  return answer;
}

void KubeletClient::Cancel() {
  const MutexLock lock(mutex_);
  cancelled_ = true;
  if (context_ != nullptr) context_->TryCancel();
}

}  // namespace neurontrace
