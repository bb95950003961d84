// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/access_book.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/status.h"

namespace neurontrace {

absl::Status AccessBook::Load() {
  if (path_.empty()) return absl::OkStatus();
  return Read();
}

absl::Status AccessBook::Read() {
  mark_ = MarkOf(path_);
  read_realtime_ns_ = clock_.RealtimeNs();
  ASSIGN_OR_RETURN(AccessRules rules, ReadAccessFile(path_));
  auto made = std::make_shared<const AccessRules>(std::move(rules));
  const std::lock_guard lock(mutex_);
  rules_ = std::move(made);
  return absl::OkStatus();
}

void AccessBook::Look(bool anyway) {
  if (path_.empty()) return;
  if (!anyway && !mark_.WasYoungAt(read_realtime_ns_) && MarkOf(path_) == mark_) return;
  const std::shared_ptr<const AccessRules> before = rules();
  const absl::Status status = Read();
  const std::string problem(status.message());
  if (problem == problem_ && (!problem.empty() || *before == *rules())) return;
  problem_ = problem;
  if (status.ok()) {
    SPDLOG_INFO("access: the {} rules of {} are in force (before: {})", rules()->size(), path_,
                before->size());
  } else {
    SPDLOG_ERROR("access: the {} rules before stay in force: {}", before->size(), problem);
  }
}

std::shared_ptr<const AccessRules> AccessBook::rules() const {
  const std::lock_guard lock(mutex_);
  return rules_;
}

}  // namespace neurontrace
