// SPDX-License-Identifier: Apache-2.0
#include "daemon/config_reload.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace neurontrace {

ConfigReload::ConfigReload(std::string path, OptionTexts in_force, std::set<std::string> at_once,
                           Hooks hooks, const Clock& clock)
    : file_(std::move(path), clock),
      at_once_(std::move(at_once)),
      hooks_(std::move(hooks)),
      in_force_(std::move(in_force)) {
  if (!file_.path().empty()) file_.MayBeNew();
}

void ConfigReload::Refuse(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(state_.problem, problem) == problem) return;
  ++state_.refused;
  const bool names_file = problem.starts_with(file_.path());
  SPDLOG_ERROR("{}{}; what was in force before stays", names_file ? "" : file_.path() + ": ",
               problem);
}

void ConfigReload::Look(bool anyway) {
  if (file_.path().empty()) return;
  if (!file_.MayBeNew() && !anyway) return;
  const absl::StatusOr<OptionTexts> read = hooks_.read();
  if (!read.ok()) return Refuse(std::string(read.status().message()));
  const OptionTexts before = in_force();
  std::vector<OptionChange> taken;
  std::vector<OptionChange> later;
  for (OptionChange& change : ChangesBetween(before, *read)) {
    (at_once_.contains(change.name) ? taken : later).push_back(std::move(change));
  }
  if (!taken.empty()) {
    const absl::Status status = hooks_.apply();
    if (!status.ok()) return Refuse(std::string(status.message()));
  }
  const std::lock_guard lock(mutex_);
  const bool is_news = !taken.empty() || later != state_.after_restart || !state_.problem.empty();
  state_.problem.clear();
  for (const OptionChange& change : taken) {
    in_force_[change.name] = change.after;
    SPDLOG_INFO("{}: {} is now '{}' (was '{}')", file_.path(), change.name, change.after,
                change.before);
  }
  if (!is_news) return;
  ++state_.taken;
  for (const OptionChange& change : later) {
    SPDLOG_WARN("{}: {} = '{}' takes a restart; '{}' stays in force until then", file_.path(),
                change.name, change.after, change.before);
  }
  if (taken.empty() && later.empty()) {
    SPDLOG_INFO("{}: it says what is in force", file_.path());
  }
  state_.after_restart = std::move(later);
}

ConfigReload::State ConfigReload::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

OptionTexts ConfigReload::in_force() const {
  const std::lock_guard lock(mutex_);
  return in_force_;
}

}  // namespace neurontrace
