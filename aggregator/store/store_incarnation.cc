// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/store_incarnation.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <fstream>

namespace neurontrace {

StoreIncarnation MakeStoreIncarnation(const std::string& directory,
                                      const std::string& aggregator_id, Random& random) {
  StoreIncarnation run{.run = fmt::format("{:016x}", random.Next64())};
  // The inode tells a copied directory from the original, and the boot id tells another machine
  // with the same inode. Without either nothing is claimed.
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  struct stat about = {};
  if (boot_id.empty() || stat(directory.c_str(), &about) != 0) return run;
  run.lock = fmt::format("{} {} {:x}.{:x}", aggregator_id, boot_id, about.st_dev, about.st_ino);
  return run;
}

}  // namespace neurontrace
