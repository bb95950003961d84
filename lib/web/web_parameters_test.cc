// SPDX-License-Identifier: Apache-2.0
// Goal: nothing but the named cookie, parameter or host is read out of what a client wrote.
#include "lib/web/web_parameters.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(CookieValueTest, FindsTheCookieOfThisNameAlone) {
  EXPECT_EQ(CookieValue("a=1; token=x; b=2", "token"), "x");
  EXPECT_EQ(CookieValue("token=x=y", "token"), "x=y");
  EXPECT_EQ(CookieValue(";  ;token=", "token"), "");
  EXPECT_EQ(CookieValue("token2=x; xtoken=y; token", "token"), "");
  EXPECT_EQ(CookieValue("", "token"), "");
  EXPECT_EQ(CookieValue("token=first; token=second", "token"), "first");
}

TEST(ParameterOfTest, FindsTheParameterOfThisNameAlone) {
  EXPECT_EQ(ParameterOf("from=1&to=2", "to"), "2");
  EXPECT_EQ(ParameterOf("from=1&&to=", "to"), "");
  EXPECT_EQ(ParameterOf("into=1&to2=2&to", "to"), "");
  EXPECT_EQ(ParameterOf("q=a=b&q=c", "q"), "a=b");
}

TEST(WithoutParameterTest, RemovesEveryOneAndLeavesTheOthersAsTheyAre) {
  EXPECT_EQ(WithoutParameter("token=1&from=%20&token=2&to=3&token=", "token"), "from=%20&to=3");
  EXPECT_EQ(WithoutParameter("tokens=1&token", "token"), "tokens=1&token");
  EXPECT_EQ(WithoutParameter("&&from=1&&token=2&", "token"), "from=1");
  EXPECT_EQ(WithoutParameter("token=1", "token"), "");
}

TEST(HostNameTest, IsTheHostWithoutItsPortInLowerCase) {
  EXPECT_EQ(HostName("LocalHost:9403"), "localhost");
  EXPECT_EQ(HostName("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(HostName("[::1]:9403"), "[::1]");
  EXPECT_EQ(HostName("[::1]"), "[::1]");
  EXPECT_EQ(HostName(""), "");
  EXPECT_EQ(HostName("localhost:1:2"), "localhost:1") << "which is no name of this machine";
  EXPECT_EQ(HostName("127.0.0.1,evil.example:80"), "127.0.0.1,evil.example");
}

TEST(IsUtf8Test, FindsBytesThatAreNone) {
  for (const char* const text : {"", "/captures/01ABC", "q=µ", "\xf0\x9f\x9a\x80"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  for (const char* const text : {"\xff", "q=\xc3", "\xed\xa0\x80", "\xc0\xaf", "a\x80z"}) {
    EXPECT_FALSE(IsUtf8(text)) << text;
  }
}

}  // namespace
}  // namespace neurontrace
