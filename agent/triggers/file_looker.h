// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/task_runner.h"
#include "base/unique_fd.h"

namespace neurontrace {

// Tells when files appear: by inotify(7) on the directories that they stand in, and by looking once
// a second, where there is no inotify, or the directory is not there yet. Only whether something of
// that name exists counts; nothing is opened, followed or read. What is there when it is looked at
// first has not appeared. On the sequence of `runner`; blocks it for as long as the file system
// takes.
class FileLooker {
 public:
  static constexpr uint64_t kLookNs = 1'000'000'000;

  // `runner` outlives it.
  FileLooker(TaskRunner& runner, std::function<void(const std::string& path)> appeared);
  ~FileLooker();
  FileLooker(const FileLooker&) = delete;
  FileLooker& operator=(const FileLooker&) = delete;

  // These absolute paths from now on; what is known of those that stay is kept.
  void SetPaths(const std::vector<std::string>& paths);

  // For tests: -1 where there is none.
  int inotify_fd() const { return inotify_.get(); }

 private:
  struct Directory {
    int watch = -1;                     // of inotify
    std::map<std::string, bool> files;  // by name: whether it is there
  };

  void Look();
  void TakeNews();
  void Found(const std::string& directory, const std::string& name);
  void LookLater();

  TaskRunner& runner_;
  const std::function<void(const std::string&)> appeared_;
  UniqueFd inotify_;
  std::map<std::string, Directory> directories_;
  bool look_scheduled_ = false;
  std::shared_ptr<FileLooker*> self_;  // tasks hold it weakly
};

}  // namespace neurontrace
