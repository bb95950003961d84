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

#if defined(__x86_64__)
TEST(Crc32c, ChainsAndOneChainAgreeForAllLengthsAndAlignments) {
  if (!__builtin_cpu_supports("sse4.2")) GTEST_SKIP() << "this processor has no crc32 instruction";
  constexpr size_t kBytesMax = 4'096;
  std::string text;
  for (size_t i = 0; i < kBytesMax + 64; ++i) text.push_back(static_cast<char>(i * i * 31 + i / 7));
  for (size_t offset = 0; offset < 16; ++offset) {
    const auto* data = reinterpret_cast<const unsigned char*>(text.data()) + offset;
    for (size_t size = 0; size <= kBytesMax; ++size) {
      ASSERT_EQ(crc32c_internal::ExtendBySse42(0x12345678, data, size),
                crc32c_internal::ExtendByOneChain(0x12345678, data, size))
          << size << " bytes at " << offset;
    }
  }
}

TEST(Crc32c, ChainsAndTableAgreeForLongInputs) {
  std::string text;
  for (size_t i = 0; i < 100'000; ++i) text.push_back(static_cast<char>(i * 2'654'435'761u >> 13));
  const auto* data = reinterpret_cast<const unsigned char*>(text.data());
  constexpr size_t kLongGroup = 3 * crc32c_internal::kLongChainBytes;
  for (const size_t size : {kLongGroup - 1, kLongGroup, kLongGroup + 1, 2 * kLongGroup + 777,
                            size_t{65'536}, text.size()}) {
    EXPECT_EQ(~crc32c_internal::ExtendByTable(~7u, data, size), ExtendCrc32c(7, data, size))
        << size;
  }
}
#endif

}  // namespace
}  // namespace neurontrace
