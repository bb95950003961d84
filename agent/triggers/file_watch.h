// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "agent/triggers/file_looker.h"
#include "base/event_loop.h"
#include "base/task_runner.h"

namespace neurontrace {

// A FileLooker on a thread of its own, so that a file system that does not answer holds up nothing
// else. The thread is there once there is a path to look for.
// thread: trigger files: looks for the files that rules name
class FileWatch {
 public:
  // `appeared` is called on `runner`, which outlives this, and not after this is gone.
  FileWatch(TaskRunner& runner, std::function<void(const std::string& path)> appeared);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  // See FileLooker::SetPaths. On `runner`.
  void SetPaths(const std::vector<std::string>& paths);

 private:
  TaskRunner& runner_;
  const std::shared_ptr<std::function<void(const std::string&)>> appeared_;  // tasks hold it weakly
  EventLoop loop_;
  std::unique_ptr<FileLooker> looker_;  // on loop_
  std::thread thread_;
};

}  // namespace neurontrace
