// SPDX-License-Identifier: Apache-2.0
#include "aggregator/triggers/rule_file_reader.h"

#include <chrono>
#include <utility>

namespace neurontrace {
namespace {

constexpr std::chrono::seconds kLookInterval{2};

}  // namespace

RuleFileReader::~RuleFileReader() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RuleFileReader::Begin(TaskRunner& runner, std::function<void(News)> tell) {
  tell_ = std::make_shared<std::function<void(News)>>(std::move(tell));
  thread_ = std::thread([this, &runner] { Run(runner); });
}

void RuleFileReader::LookNow() {
  {
    const std::lock_guard lock(mutex_);
    asked_ = true;
  }
  changed_.notify_all();
}

void RuleFileReader::Run(TaskRunner& runner) {
  while (true) {
    bool anyway = false;
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kLookInterval, [this] { return asked_ || ending_; });
      if (ending_) return;
      anyway = std::exchange(asked_, false);
    }
    const std::string before = watch_.problem();
    News news{.rules = watch_.Look(anyway), .problem = watch_.problem()};
    if (!news.rules && news.problem == before) continue;
    runner.PostTask([weak = std::weak_ptr(tell_), news = std::move(news)] {
      if (const auto tell = weak.lock()) (*tell)(news);
    });
  }
}

}  // namespace neurontrace
