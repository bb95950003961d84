// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/xla/xla_client.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <functional>
#include <utility>

#include "agent/source/framework/xla/xspace_folder.h"
#include "agent/source/framework/xspace_scan.h"
#include "lib/base/clean_text.h"
#include "lib/trace/framework_limits.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// The name of the file in the folder of a session, by which older servers call theirs, too.
constexpr const char* kHostName = "worker";
// How long a process gets to hear that its session ends.
constexpr std::chrono::seconds kEndTimeout{5};
constexpr size_t kXSpaceHeadBytes = 16;
// A mask with a bit for each algorithm of compression: none but "identity", which is the first.
constexpr int kUncompressedOnly = 1;

std::shared_ptr<grpc::Channel> MakeLocalChannel(const XlaOrder& order) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(static_cast<int>(order.answer_bytes_max));
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, static_cast<int>(limits::kDetailBytesMax) * 16);
  // The limit of a message is one of its compressed size.
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, kUncompressedOnly);
  // A proxy of the environment would never reach a process of this machine.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // A session that broke has recorded nothing that a second one could answer with.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  // The limit of messages is that of a channel, so that no two orders may share one.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(order.address, grpc::InsecureChannelCredentials(), arguments);
}

// The host's tracer alone, so that XLA leaves the devices, and with them the runtime's capture, to
// the tap.
tensorflow::ProfileRequest RequestFor(const XlaOrder& order, const std::string& directory) {
  const uint64_t duration_ms = std::max<uint64_t>(order.duration_ns / 1'000'000, 1);
  tensorflow::ProfileRequest request;
  request.set_duration_ms(duration_ms);
  tensorflow::ProfileOptions& options = *request.mutable_opts();
  options.set_version(1);
  options.set_host_tracer_level(2);
  options.set_device_tracer_level(0);
  options.set_python_tracer_level(order.with_stacks ? 1 : 0);
  options.set_start_timestamp_ns(order.begin_realtime_ns);
  options.set_duration_ms(duration_ms);
  request.set_repository_root(directory);
  request.set_session_id(order.session);
  request.set_host_name(kHostName);
  request.set_emit_xspace(true);
  return request;
}

std::chrono::system_clock::time_point DeadlineAfter(std::chrono::nanoseconds timeout) {
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(timeout);
}

}  // namespace

struct XlaClient::Call {
  std::string session;
  std::unique_ptr<tensorflow::ProfilerService::Stub> stub;
  // Passes the answer to the one who gave the order, if this client still exists.
  std::function<void(const XlaAnswer&)> deliver;

  grpc::ClientContext context;
  tensorflow::ProfileRequest request;
  tensorflow::ProfileResponse response;

  // Guarded by the client's mutex.
  bool is_ending = false;
  int halves = 1;  // of this that gRPC uses: the order, and its end

  grpc::ClientContext end_context;
  tensorflow::TerminateRequest end_request;
  tensorflow::TerminateResponse end_response;
};

XlaClient::XlaClient(std::string directory, TaskRunner& runner)
    : directory_(std::move(directory)), runner_(runner), thread_([this] { loop_.Run(); }) {}

XlaClient::~XlaClient() {
  {
    MutexLock lock(mutex_);
    for (const auto& [session, call] : calls_) {
      call->context.TryCancel();
      call->end_context.TryCancel();
    }
    left_.Wait(mutex_, [this]() NT_REQUIRES(mutex_) { return calls_.empty(); });
  }
  loop_.Quit();
  thread_.join();
}

void XlaClient::Begin(const XlaOrder& order, XlaAnswers& answers) {
  auto owned = std::make_unique<Call>();
  Call* const call = owned.get();
  call->session = order.session;
  call->stub = tensorflow::ProfilerService::NewStub(MakeLocalChannel(order));
  call->deliver = weak_tasks_.Wrap([session = order.session, &answers](const XlaAnswer& answer) {
    answers.OnAnswer(session, answer);
  });
  call->context.set_deadline(DeadlineAfter(std::chrono::nanoseconds(order.timeout_ns)));
  call->request = RequestFor(order, directory_);
  {
    const MutexLock lock(mutex_);
    assert(!calls_.contains(order.session));
    calls_.insert_or_assign(order.session, std::move(owned));
  }
  call->stub->async()->Profile(
      &call->context, &call->request, &call->response, [this, call](const grpc::Status& status) {
        loop_.PostTask([this, call, status] {
          runner_.PostTask([deliver = call->deliver, answer = Save(*call, status)]() mutable {
            deliver(answer);
          });
          Leave(*call);
        });
      });
}

void XlaClient::End(const std::string& session) {
  const MutexLock lock(mutex_);
  const auto it = calls_.find(session);
  if (it == calls_.end() || std::exchange(it->second->is_ending, true)) return;
  Call* const call = it->second.get();
  ++call->halves;
  call->end_context.set_deadline(DeadlineAfter(kEndTimeout));
  call->end_request.set_session_id(session);
  // Whether the process has received this, its answer to the order shows.
  call->stub->async()->Terminate(
      &call->end_context, &call->end_request, &call->end_response,
      [this, call](const grpc::Status&) { loop_.PostTask([this, call] { Leave(*call); }); });
}

void XlaClient::Cancel(const std::string& session) {
  const MutexLock lock(mutex_);
  const auto it = calls_.find(session);
  if (it != calls_.end()) it->second->context.TryCancel();
}

XlaAnswer XlaClient::Save(const Call& call, const grpc::Status& status) const {
  using Kind = XlaAnswer::Kind;
  if (!status.ok()) {
    return {Kind::kFailed,
            absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                         CleanText(status.error_message(), limits::kRemarkDetailBytesMax))};
  }
  const std::string& xspace = call.response.xspace();
  if (xspace.empty()) return {Kind::kWithout, absl::OkStatus()};
  const std::string_view head = std::string_view(xspace).substr(0, kXSpaceHeadBytes);
  if (!LooksLikeXSpace(head, xspace.size())) {
    return {Kind::kNotXSpace, absl::OkStatus(), xspace.size()};
  }
  const absl::Status saved = SaveXSpace(directory_, call.session, kHostName, xspace);
  return {saved.ok() ? Kind::kSaved : Kind::kNotSaved, saved, xspace.size()};
}

// A channel is destroyed here and not on gRPC's thread: that of the last one waits for that thread.
void XlaClient::Leave(Call& call) {
  std::unique_ptr<Call> ended;
  MutexLock lock(mutex_);
  if (--call.halves > 0) return;
  const auto it = calls_.find(call.session);
  assert(it != calls_.end());
  ended = std::move(it->second);
  calls_.erase(it);
  left_.NotifyAll();
}

}  // namespace neurontrace
