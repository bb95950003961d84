// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/stored_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace neurontrace {
namespace {

TEST(StoredBytes, RefusesNumbersThatDoNotFit) {
  StoredBytesReader too_long(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"));
  EXPECT_EQ(too_long.Uint(), 0u);
  EXPECT_FALSE(too_long.ok());
  StoredBytesReader count_beyond(std::string_view("\x7f"));
  EXPECT_EQ(count_beyond.Count(), 0u);
  EXPECT_FALSE(count_beyond.ok());
  const std::string of_two = std::string("\2") + "four";
  EXPECT_EQ(StoredBytesReader(of_two).Count(2), 2u);
  StoredBytesReader too_many(of_two);
  EXPECT_EQ(too_many.Count(3), 0u);
  EXPECT_FALSE(too_many.ok());
}

// A copy of a store may come from anybody, and is shown.
TEST(StoredBytes, TextsHaveNoControlCharacters) {
  StoredBytesWriter out(1);
  for (int i = 0; i < 2; ++i) out.String("caf\u00e9\x1b[2J\xff\n");
  const std::string bytes = out.Take();
  StoredBytesReader in(bytes);
  EXPECT_EQ(in.Uint(), 1u);
  EXPECT_EQ(in.String(), "caf\u00e9?[2J??");
  EXPECT_EQ(in.Bytes(), "caf\u00e9\x1b[2J\xff\n");
  EXPECT_TRUE(in.Finished());
}

}  // namespace
}  // namespace neurontrace
