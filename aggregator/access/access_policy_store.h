// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "aggregator/access/access_rules.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/small_file.h"

namespace neurontrace {

// The rules of access in force. Where a new version of their file is not good, or it is gone, the
// rules before stay, and the log says what is wrong, once. Load and Look by one thread, which they
// keep waiting for the disk; rules() by any.
class AccessPolicyStore {
 public:
  // An empty path: the rules of AccessRules() for ever. `clock` outlives it.
  AccessPolicyStore(std::string path, const Clock& clock)
      : file_(std::move(path), ReadAccessFile, clock) {}

  // For the first time; see ReadAccessFile for errors.
  absl::Status Load();
  // Reloads the file if it has changed, or in any case.
  void Look(bool anyway);

  std::shared_ptr<const AccessRules> rules() const;

  bool has_file() const { return !file_.path().empty(); }
  // Whether the rules in force are those of the file. By the thread of Look.
  bool is_good() const { return file_.problem().empty(); }

 private:
  void Publish();

  ReloadedFile<AccessRules> file_;

  mutable Mutex mutex_;
  std::shared_ptr<const AccessRules> rules_ NT_GUARDED_BY(mutex_) = std::make_shared<AccessRules>();
};

}  // namespace neurontrace
