// SPDX-License-Identifier: Apache-2.0
// Goal: a store that is opened again has its lock again, and a copy of it another one.
#include "aggregator/store/store_incarnation.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

namespace fs = std::filesystem;

TEST(StoreIncarnationTest, IsOfTheDirectoryAndOfTheOpening) {
  const TemporaryDirectory directory;
  const std::string& top = directory.path();
  fs::create_directory(top + "/store");
  fs::create_directory(top + "/copy");
  SeededRandom random(7);
  const StoreIncarnation first = MakeStoreIncarnation(top + "/store", "agg-1", random);
  const StoreIncarnation second = MakeStoreIncarnation(top + "/store", "agg-1", random);
  EXPECT_FALSE(first.lock.empty());
  EXPECT_EQ(first.lock, second.lock);
  EXPECT_NE(first.run, second.run);
  EXPECT_NE(MakeStoreIncarnation(top + "/copy", "agg-1", random).lock, first.lock);
  EXPECT_NE(MakeStoreIncarnation(top + "/store", "agg-2", random).lock, first.lock);
  EXPECT_EQ(MakeStoreIncarnation(top + "/none", "agg-1", random).lock, "");
}

}  // namespace
}  // namespace neurontrace
