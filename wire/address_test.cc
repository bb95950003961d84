// SPDX-License-Identifier: Apache-2.0
#include "wire/address.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(AddressTest, TakesHostAndPort) {
  for (const char* const good : {"127.0.0.1:9400", "[::1]:0", "aggregator.example:65535"}) {
    EXPECT_EQ(CheckAddress(good), "") << good;
  }
  for (const char* const bad :
       {"", "host", ":9400", "::1:9400", "host:", "host:65536", "host:1x"}) {
    EXPECT_NE(CheckAddress(bad), "") << bad;
  }
}

TEST(AddressTest, LoopbackIsWhatOnlyThisMachineReaches) {
  for (const char* const here : {"127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(IsLoopback(here)) << here;
  }
  for (const char* const there :
       {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "127.example.org:1", "localhost.example:1"}) {
    EXPECT_FALSE(IsLoopback(there)) << there;
  }
}

}  // namespace
}  // namespace neurontrace
