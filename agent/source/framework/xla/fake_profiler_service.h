// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "lib/base/mutex.h"
#include "proto/xla/profiler_service.grpc.pb.h"

namespace neurontrace {

// For tests: XLA's ProfilerService as far as clients can tell, with one session at a time. A
// session lasts until Release or Terminate, or, if it follows time, until its duration has passed
// behind its begin. Methods run on gRPC's threads.
class FakeProfilerService : public tensorflow::ProfilerService::Service {
 public:
  explicit FakeProfilerService(bool follows_time = false) : follows_time_(follows_time) {}

  grpc::Status Profile(grpc::ServerContext* context, const tensorflow::ProfileRequest* request,
                       tensorflow::ProfileResponse* response) override {
    MutexLock lock(mutex_);
    requests_.push_back(*request);
    changed_.NotifyAll();
    if (is_busy_) return {grpc::StatusCode::INTERNAL, "Another profiling session active."};
    is_busy_ = true;
    // The period is XLA's: it asks every millisecond whether the call was cancelled.
    while (!changed_.WaitFor(mutex_, std::chrono::milliseconds(1), [&]() NT_REQUIRES(mutex_) {
      return is_released_ || terminated_ == request->session_id() || context->IsCancelled() ||
             (follows_time_ && IsOver(*request));
    })) {
    }
    is_busy_ = is_released_ = false;
    if (context->IsCancelled()) {
      ++cancelled_;
      changed_.NotifyAll();
      return grpc::Status::CANCELLED;
    }
    response->set_xspace(XSpaceFor(*request));
    response->set_empty_trace(response->xspace().empty());
    return grpc::Status::OK;
  }
  grpc::Status Terminate(grpc::ServerContext*, const tensorflow::TerminateRequest* request,
                         tensorflow::TerminateResponse*) override {
    const MutexLock lock(mutex_);
    terminated_ = request->session_id();
    changed_.NotifyAll();
    return grpc::Status::OK;
  }

  // Sets what sessions answer with, and whether the program profiles by itself.
  void SetXSpace(std::string xspace) {
    const MutexLock lock(mutex_);
    xspace_ = std::move(xspace);
  }
  void SetBusy(bool is_busy) {
    const MutexLock lock(mutex_);
    is_busy_ = is_busy;
  }
  // Ends the session that runs, or the next one at once.
  void Release() {
    const MutexLock lock(mutex_);
    is_released_ = true;
    changed_.NotifyAll();
  }
  // Returns the `number`-th request, counted from 1, once it has come.
  tensorflow::ProfileRequest WaitForRequest(size_t number = 1) {
    MutexLock lock(mutex_);
    changed_.Wait(mutex_, [&]() NT_REQUIRES(mutex_) { return requests_.size() >= number; });
    return requests_[number - 1];
  }
  // Returns once a session has ended because its client gave it up.
  void WaitForCancelled() {
    MutexLock lock(mutex_);
    changed_.Wait(mutex_, [this]() NT_REQUIRES(mutex_) { return cancelled_ > 0; });
  }

 protected:
  // Returns the trace of the session that has just ended. The mutex is held.
  virtual std::string XSpaceFor(const tensorflow::ProfileRequest&) NT_REQUIRES(mutex_) {
    return xspace_;
  }

  Mutex mutex_;

 private:
  static bool IsOver(const tensorflow::ProfileRequest& request) {
    const auto now_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::system_clock::now().time_since_epoch());
    return static_cast<uint64_t>(now_ns.count()) >=
           request.opts().start_timestamp_ns() + request.opts().duration_ms() * 1'000'000;
  }

  const bool follows_time_;
  CondVar changed_;
  std::vector<tensorflow::ProfileRequest> requests_ NT_GUARDED_BY(mutex_);
  std::string xspace_ NT_GUARDED_BY(mutex_);
  std::string terminated_ NT_GUARDED_BY(mutex_);
  bool is_busy_ NT_GUARDED_BY(mutex_) = false;
  bool is_released_ NT_GUARDED_BY(mutex_) = false;
  size_t cancelled_ NT_GUARDED_BY(mutex_) = 0;
};

}  // namespace neurontrace
