// SPDX-License-Identifier: Apache-2.0
#include "agent/triggers/file_watch.h"

#include <utility>

namespace neurontrace {

FileWatch::FileWatch(TaskRunner& runner, std::function<void(const std::string&)> appeared)
    : runner_(runner),
      appeared_(std::make_shared<std::function<void(const std::string&)>>(std::move(appeared))) {}

FileWatch::~FileWatch() {
  if (!thread_.joinable()) return;
  loop_.PostTask([this] {
    looker_.reset();
    loop_.Quit();
  });
  thread_.join();
}

void FileWatch::SetPaths(const std::vector<std::string>& paths) {
  if (paths.empty() && !thread_.joinable()) return;
  loop_.PostTask([this, paths] {
    if (looker_ == nullptr) {
      looker_ = std::make_unique<FileLooker>(loop_, [this](const std::string& path) {
        runner_.PostTask([path, weak = std::weak_ptr(appeared_)] {
          if (const auto appeared = weak.lock()) (*appeared)(path);
        });
      });
    }
    looker_->SetPaths(paths);
  });
  if (!thread_.joinable()) thread_ = std::thread([this] { loop_.Run(); });
}

}  // namespace neurontrace
