// SPDX-License-Identifier: Apache-2.0
#include "lib/daemon/config_reload.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace neurontrace {

ConfigReload::ConfigReload(std::string path, EffectiveOptions in_force,
                           std::set<std::string> at_once, Hooks hooks, const Clock& clock)
    : file_(std::move(path), clock),
      at_once_(std::move(at_once)),
      hooks_(std::move(hooks)),
      in_force_(std::move(in_force)) {
  // Records the version that the program has started with, so that the first Look does not reload
  // it.
  if (!file_.path().empty()) file_.IsPossiblyNew();
}

void ConfigReload::Refuse(const std::string& problem) {
  const MutexLock lock(mutex_);
  // Logged once, not at each look.
  if (std::exchange(state_.problem, problem) == problem) return;
  ++state_.refused;
  const bool names_file = problem.starts_with(file_.path());
  SPDLOG_ERROR("{}{}; the previous values stay in effect", names_file ? "" : file_.path() + ": ",
               problem);
}

void ConfigReload::Poll(bool anyway) {
  if (file_.path().empty()) return;
  // SIGHUP forces a reload of a file that looks unchanged.
  if (!file_.IsPossiblyNew() && !anyway) return;
  const absl::StatusOr<EffectiveOptions> read = hooks_.read();
  if (!read.ok()) return Refuse(std::string(read.status().message()));
  const EffectiveOptions before = in_force();
  std::vector<OptionChange> taken;
  std::vector<OptionChange> later;
  // Only some options can change at once; the others wait for a restart.
  for (OptionChange& change : ChangesBetween(before, *read)) {
    (at_once_.contains(change.name) ? taken : later).push_back(std::move(change));
  }
  // Applied before anything is recorded: if applying fails, the old values are still in force.
  if (!taken.empty()) {
    const absl::Status status = hooks_.apply();
    if (!status.ok()) return Refuse(std::string(status.message()));
  }
  const MutexLock lock(mutex_);
  // A file that was rewritten with the same values is not worth a line.
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
    SPDLOG_WARN("{}: {} = '{}' needs a restart; '{}' stays in effect until then", file_.path(),
                change.name, change.after, change.before);
  }
  if (taken.empty() && later.empty()) {
    SPDLOG_INFO("{}: it matches the values in effect", file_.path());
  }
  state_.after_restart = std::move(later);
}

ConfigReload::State ConfigReload::state() const {
  const MutexLock lock(mutex_);
  return state_;
}

EffectiveOptions ConfigReload::in_force() const {
  const MutexLock lock(mutex_);
  return in_force_;
}

}  // namespace neurontrace
