// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/base/random.h"

namespace neurontrace {

// Identifies an open store and this opening of it. A store is open in one process at a time, so
// files elsewhere that an earlier run with the same lock left belong to a process that is gone. A
// copied store, or one on another machine, has a different lock. A plain value.
struct StoreIncarnation {
  std::string lock;  // empty if the store's directory cannot be identified
  std::string run;   // random, distinct for each opening
};

// Describes the store that this process has open in `directory`. The lock combines the store's id,
// the machine's boot id, and device and inode of the directory.
StoreIncarnation MakeStoreIncarnation(const std::string& directory,
                                      const std::string& aggregator_id, Random& random);

}  // namespace neurontrace
