// SPDX-License-Identifier: Apache-2.0
// The published check values, and that pieces and both implementations agree.
#include "lib/base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace neurontrace {
namespace {

TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(Crc32c("123456789", 9), 0xe3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0').data(), 32), 0x8a9136aau);  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(std::string(32, '\xff').data(), 32), 0x62a8ab43u);
  EXPECT_EQ(Crc32c("", 0), 0u);
}

TEST(Crc32c, ExtendsByPieces) {
  std::string text;
  for (int i = 0; i < 300; ++i) text.push_back(static_cast<char>(i * 37));
  const uint32_t whole = Crc32c(text.data(), text.size());
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t first = Crc32c(text.data(), cut);
    EXPECT_EQ(ExtendCrc32c(first, text.data() + cut, text.size() - cut), whole);
  }
}

TEST(Crc32c, TableAndProcessorAgree) {
  std::string text;
  for (int i = 0; i < 100; ++i) {
    text.push_back(static_cast<char>(i * 91 + 3));
    const auto* data = reinterpret_cast<const unsigned char*>(text.data());
    EXPECT_EQ(~crc32c_internal::ExtendByTable(~0u, data, text.size()),
              Crc32c(text.data(), text.size()));
  }
}

}  // namespace
}  // namespace neurontrace
