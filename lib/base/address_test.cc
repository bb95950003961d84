// SPDX-License-Identifier: Apache-2.0
#include "lib/base/address.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(AddressTest, TakesHostAndPort) {
  for (const char* const good : {"127.0.0.1:9400", "[::1]:0", "[fe80::1%eth0]:1",
                                 "aggregator.example:65535", "my_host-1:1"}) {
    EXPECT_EQ(CheckAddress(good), "") << good;
  }
  for (const char* const bad : {"",
                                "host",
                                ":9400",
                                "::1:9400",
                                "host:",
                                "host:65536",
                                "host:1x",
                                "host:99999",
                                "host:27400x",
                                "host:+1",
                                "host:-1",
                                "host: 1",
                                "host:0x10",
                                "host:4294967297",
                                "host:18446744073709551617",
                                "http://host:1",
                                "ho st:1",
                                "host/x:1",
                                "[::1:1",
                                "::1]:1",
                                "[host]:1",
                                "[]:1",
                                "-host:1",
                                "h\xff:1",
                                "host:1\n"}) {
    EXPECT_NE(CheckAddress(bad), "") << bad;
  }
  EXPECT_NE(CheckAddress(std::string(300, 'a') + ":1"), "");
}

TEST(AddressTest, NothingIsReachedAtPort0) {
  EXPECT_EQ(CheckPeerAddress("host:1"), "");
  EXPECT_NE(CheckPeerAddress("host:0"), "");
  EXPECT_NE(CheckPeerAddress("host:99999"), "");
}

TEST(AddressTest, GivesTheHostWithoutBrackets) {
  const auto parsed = ParseHostPort("[::1]:9400");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->host, "::1");
  EXPECT_EQ(parsed->port, 9400);
}

TEST(AddressTest, ReportsInvalidAddress) {
  EXPECT_NE(CheckAddress("host:99999").find("host:99999"), std::string::npos);
  EXPECT_NE(CheckAddress("host:99999").find("65535"), std::string::npos);
}

TEST(AddressTest, ATakenPortHasItsOptionAndAWayOut) {
  EXPECT_EQ(DescribeListenFailure("--listen", absl::UnavailableError("cannot listen on h:1: no"))
                .message(),
            "--listen: cannot listen on h:1: no");
  EXPECT_NE(DescribeListenFailure("--listen", absl::UnavailableError("h:1: Address already in use"))
                .message()
                .find("choose another port"),
            std::string_view::npos);
}

TEST(AddressTest, DetectsLoopback) {
  for (const char* const here : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(IsLoopback(here)) << here;
  }
  for (const char* const there :
       {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "127.example.org:1", "localhost.example:1",
        "127.1.2.3.4:1", "127.0.0.256:1", "127.0.0.0000001:1", "127..0.1:1", "127.:1"}) {
    EXPECT_FALSE(IsLoopback(there)) << there;
  }
}

}  // namespace
}  // namespace neurontrace
