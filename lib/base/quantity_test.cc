// SPDX-License-Identifier: Apache-2.0
#include "lib/base/quantity.h"

#include <gtest/gtest.h>

#include <map>

namespace neurontrace {
namespace {

TEST(QuantityTest, SizesAreOf1000AndWithAnIOf1024) {
  const std::map<std::string, uint64_t> sizes = {{"0", 0},
                                                 {"4096", 4'096},
                                                 {"1B", 1},
                                                 {"1k", 1'000},
                                                 {"1kB", 1'000},
                                                 {"500MB", 500'000'000},
                                                 {"2GB", 2'000'000'000},
                                                 {"4G", 4'000'000'000},
                                                 {"4gb", 4'000'000'000},
                                                 {"1TB", 1'000'000'000'000},
                                                 {"1KiB", 1'024},
                                                 {"64MiB", 64u << 20},
                                                 {"4Gi", uint64_t{4} << 30},
                                                 {"4gib", uint64_t{4} << 30},
                                                 {"1.5 GiB", uint64_t{3} << 29},
                                                 {"0.5KiB", 512},
                                                 {"9007199254740993", 9'007'199'254'740'993}};
  for (const auto& [text, bytes] : sizes) {
    const auto parsed = ParseByteSize(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(QuantityTest, RejectsInvalidSizes) {
  for (const char* const bad : {"1Kb",     "2Mib",
                                "",        "-1",
                                "-5GB",    "+1",
                                "1e3",     "0x10",
                                "inf",     "nan",
                                "GB",      "1XB",
                                "1GBx",    "1..5GB",
                                "1.5",     "0.1B",
                                "1  GB",   "1 ",
                                " 1",      "1000000000000000000",
                                "20000PB", "99999999999999999999999",
                                "1\xff"}) {
    EXPECT_FALSE(ParseByteSize(bad).ok()) << bad;
  }
}

TEST(QuantityTest, WholeNumbersAreDecimal) {
  for (const char* const good : {"0", "1", "65536", "18446744073709551615"}) {
    EXPECT_EQ(CheckWholeNumber(good), "") << good;
  }
  for (const char* const bad :
       {"", "-5", "+5", "010", "0x10", "1e3", "1.0", " 1", "1 ", "1x", "99999999999999999999"}) {
    EXPECT_NE(CheckWholeNumber(bad), "") << bad;
  }
}

}  // namespace
}  // namespace neurontrace
