// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <map>
#include <memory>
#include <string>
#include <thread>

#include "agent/source/framework/xla/xla_calls.h"
#include "lib/base/event_loop.h"
#include "lib/base/mutex.h"
#include "lib/base/task_runner.h"
#include "lib/base/weak_tasks.h"
#include "proto/xla/profiler_service.grpc.pb.h"

namespace neurontrace {

// Calls XLA's ProfilerService by gRPC and saves the XSpaces that come back in DIRECTORY/SESSION.
// The service has no encryption and no authentication, so it is called on this machine alone, and
// what it answers is any process's word: its size is limited, compressed answers are refused, and
// it has to begin as an XSpace does.
//
// Owned by XlaRecorder. Its functions are called on `runner`'s sequence. gRPC's threads only pass
// answers on.
// thread: xla: checks XSpaces and writes them to the framework directory
class XlaClient final : public XlaCalls {
 public:
  // `directory` is the framework directory, absolute. `runner` outlives this.
  XlaClient(std::string directory, TaskRunner& runner);
  // Ends all calls, and waits until the file that is being written is there.
  ~XlaClient() override;

  // XlaCalls
  void Begin(const XlaOrder& order, XlaAnswers& answers) override;
  void End(const std::string& session) override;
  void Cancel(const std::string& session) override;

 private:
  // One order, with the contexts and messages that gRPC uses.
  struct Call;

  // Returns the answer to an order whose call has ended with `status`, after its XSpace was saved.
  // On the thread.
  XlaAnswer Save(const Call& call, const grpc::Status& status) const;
  // Handles that gRPC no longer uses one half of the call, and destroys it after the last. On the
  // thread.
  void Leave(Call& call);

  const std::string directory_;
  TaskRunner& runner_;
  WeakTasks weak_tasks_;
  Mutex mutex_;
  CondVar left_;
  std::map<std::string, std::unique_ptr<Call>> calls_ NT_GUARDED_BY(mutex_);  // by session
  EventLoop loop_;
  std::thread thread_;
};

}  // namespace neurontrace
