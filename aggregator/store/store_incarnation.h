// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "lib/base/random.h"

namespace neurontrace {

// Which open store this is, and which opening of it. A store is open in one process at a time, so
// what an earlier run of the same lock left is of a process that is gone. A copy of a store, and
// one that is moved to another machine, have another lock. A plain value.
struct StoreIncarnation {
  std::string lock;  // empty where the store's directory tells nothing
  std::string run;
};

// Of the store that this process has open in `directory`; `aggregator_id` is its own.
StoreIncarnation MakeStoreIncarnation(const std::string& directory,
                                      const std::string& aggregator_id, Random& random);

}  // namespace neurontrace
