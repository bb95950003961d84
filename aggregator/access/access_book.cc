// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/access_book.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/status.h"

namespace neurontrace {

absl::Status AccessBook::Load() {
  if (file_.path().empty()) return absl::OkStatus();
  file_.MayBeNew();
  return Read();
}

absl::Status AccessBook::Read() {
  ASSIGN_OR_RETURN(AccessRules rules, ReadAccessFile(file_.path()));
  if (!rules.has_agents() && this->rules()->has_agents()) {
    SPDLOG_WARN("access: no rule of {} has the role agent: agents are refused", file_.path());
  }
  auto made = std::make_shared<const AccessRules>(std::move(rules));
  const std::lock_guard lock(mutex_);
  rules_ = std::move(made);
  return absl::OkStatus();
}

void AccessBook::Look(bool anyway) {
  if (file_.path().empty()) return;
  if (!file_.MayBeNew() && !anyway) return;
  const std::shared_ptr<const AccessRules> before = rules();
  const absl::Status status = Read();
  const std::string problem(status.message());
  if (problem == problem_ && (!problem.empty() || *before == *rules())) return;
  problem_ = problem;
  if (status.ok()) {
    SPDLOG_INFO("access: the {} rules of {} are in force (before: {})", rules()->size(),
                file_.path(), before->size());
  } else {
    SPDLOG_ERROR("access: the {} rules before stay in force: {}", before->size(), problem);
  }
}

std::shared_ptr<const AccessRules> AccessBook::rules() const {
  const std::lock_guard lock(mutex_);
  return rules_;
}

}  // namespace neurontrace
