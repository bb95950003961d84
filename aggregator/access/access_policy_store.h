// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "aggregator/access/access_rules.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"
#include "lib/base/reloaded_file.h"

namespace neurontrace {

// The access rules in force. If a new version of their file is invalid, or the file is gone, the
// previous rules stay in force and the log says once what is wrong. Load and Look are called by one
// thread and wait for the disk; rules() by any thread. Used by Authenticator for every call, and
// polled by AccessControl.
class AccessPolicyStore {
 public:
  // With an empty path the rules are those of AccessRules() for ever. `clock` must outlive this.
  AccessPolicyStore(std::string path, const Clock& clock)
      : file_(std::move(path), ReadAccessFile, clock) {}

  // Reads the file for the first time; fails as ReadAccessFile does. Does nothing without a file.
  absl::Status Load();
  // Reads the file again if it has changed, or in any case with `anyway`. Logs every change, and
  // every new problem once. Does not fail: the previous rules stay in force.
  void Poll(bool anyway);

  // Returns the rules in force; they stay valid for the caller when they are replaced.
  std::shared_ptr<const AccessRules> rules() const;

  bool has_file() const { return !file_.path().empty(); }
  // Returns whether the rules in force are those of the file. On the thread of Look.
  bool is_good() const { return file_.problem().empty(); }

 private:
  // Makes the rules of the file those in force. On the thread of Look.
  void Publish();

  // Used by the thread of Look only.
  ReloadedFile<AccessRules> file_;

  // Held only while the pointer is copied or replaced, so callers never wait for the disk.
  mutable Mutex mutex_;
  std::shared_ptr<const AccessRules> rules_ NT_GUARDED_BY(mutex_) = std::make_shared<AccessRules>();
};

}  // namespace neurontrace
