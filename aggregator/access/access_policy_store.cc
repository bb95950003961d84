// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/access_policy_store.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "lib/base/status.h"

namespace neurontrace {

// Without a good file at the start there are no previous rules to fall back to, so this fails.
absl::Status AccessPolicyStore::Load() {
  if (!has_file()) return absl::OkStatus();
  RETURN_IF_ERROR(file_.Load());
  Publish();
  return absl::OkStatus();
}

// Warns if the new rules lock out all agents.
void AccessPolicyStore::Publish() {
  if (!file_.contents().has_agents() && rules()->has_agents()) {
    SPDLOG_WARN("access: no rule of {} has the role agent, so all agents are refused",
                file_.path());
  }
  // The copy is made before the lock is taken.
  auto made = std::make_shared<const AccessRules>(file_.contents());
  const MutexLock lock(mutex_);
  rules_ = std::move(made);
}

// Poll returns false while neither the contents nor the problem change.
void AccessPolicyStore::Poll(bool anyway) {
  if (!has_file() || !file_.Poll(anyway)) return;
  const size_t before = rules()->size();
  if (is_good()) {
    Publish();
    SPDLOG_INFO("access: the {} rules of {} take effect (previously {} rules)", rules()->size(),
                file_.path(), before);
  } else {
    SPDLOG_ERROR("access: the previous {} rules stay in effect: {}", before, file_.problem());
  }
}

std::shared_ptr<const AccessRules> AccessPolicyStore::rules() const {
  const MutexLock lock(mutex_);
  return rules_;
}

}  // namespace neurontrace
