// SPDX-License-Identifier: Apache-2.0
// Times are read digit by digit: tables of texts and what they mean.
#include "agent/source/framework/decimal_time.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lib/base/random.h"

namespace neurontrace {
namespace {

TEST(DecimalTime, ReadsMicrosecondsAsNanoseconds) {
  const struct {
    const char* text;
    DecimalTime time;
  } cases[] = {
      {"0", {0, false, true}},
      {"1", {1000, false, true}},
      {"1694128201421812", {1'694'128'201'421'812'000, false, true}},
      {"4462233412.125", {4'462'233'412'125, false, true}},
      // As a double this would come out 256 ns away.
      {"1716377646123456.789", {1'716'377'646'123'456'789, false, true}},
      {"0.001", {1, false, true}},
      {"0.0010", {1, false, true}},
      {"0.0019", {1, false, false}},
      {"0.0001", {0, false, false}},
      {"-1.5", {1500, true, true}},
      {"1.5e3", {1'500'000, false, true}},
      {"1.5E+3", {1'500'000, false, true}},
      {"15e-1", {1500, false, true}},
      {"1.2345e-3", {1, false, false}},
      {"1e-9", {0, false, false}},
      {"0e999999999", {0, false, true}},
      {"1e-999999999", {0, false, false}},
      {"18446744073709551.615", {UINT64_MAX, false, true}},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const auto got = ParseMicroseconds(c.text);
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->ns, c.time.ns);
    EXPECT_EQ(got->negative, c.time.negative);
    EXPECT_EQ(got->exact, c.time.exact);
  }
}

TEST(DecimalTime, RefusesWhatIsNoJsonNumberOrTooLarge) {
  for (const char* text : {"", "-", "+1", ".5", "1.", "1e", "1e+", "1e1234567890", "NaN", "1x",
                           " 1", "0x10", "01", "18446744073709551.616", "1e300", "1e17", "1,5"}) {
    EXPECT_FALSE(ParseMicroseconds(text).has_value()) << text;
  }
}

TEST(DecimalTime, AnyNanosecondsSurviveWritingAsMicroseconds) {
  SeededRandom random(7);
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t ns = random.Next64() >> (random.Next64() % 64);
    const auto got = ParseMicroseconds(fmt::format("{}.{:03}", ns / 1000, ns % 1000));
    ASSERT_TRUE(got.has_value()) << ns;
    EXPECT_EQ(got->ns, ns);
    EXPECT_TRUE(got->exact);
  }
}

TEST(ParseNanoseconds, ReadsEveryNumberFormat) {
  EXPECT_EQ(ParseNanoseconds("1790000000000000000")->ns, 1'790'000'000'000'000'000u);
  EXPECT_EQ(ParseNanoseconds("1.79e+18")->ns, 1'790'000'000'000'000'000u);
  EXPECT_EQ(ParseNanoseconds("1790000000000000001.0")->ns, 1'790'000'000'000'000'001u);
  EXPECT_FALSE(ParseNanoseconds("7.5")->exact);
  EXPECT_FALSE(ParseNanoseconds("1.79e19.0"));
  EXPECT_FALSE(ParseNanoseconds("1.79e20"));
}

}  // namespace
}  // namespace neurontrace
