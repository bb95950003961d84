// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/peer_slots.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace neurontrace {
namespace {

TEST(PeerSlots, EachAddressHasASlotOfItsOwnWhileThereAreEnough) {
  PeerSlots slots(3);
  const auto all = [](const std::string&) { return true; };
  std::set<size_t> used;
  for (const char* const host : {"a", "b", "c"}) {
    const size_t slot = slots.Assign(host, all);
    EXPECT_TRUE(used.insert(slot).second);
    EXPECT_EQ(slots.Describe(slot), host);
    EXPECT_EQ(slots.Assign(host, all), slot);
  }
}

TEST(PeerSlots, ReusesSlotsAndNamesSharersTogether) {
  PeerSlots slots(2);
  const auto all = [](const std::string&) { return true; };
  const size_t a = slots.Assign("a", all);
  slots.Assign("b", all);
  const size_t c = slots.Assign("c", [](const std::string& host) { return host != "a"; });
  EXPECT_EQ(c, a);
  EXPECT_EQ(slots.Describe(c), "c");
  const size_t d = slots.Assign("d", all);
  EXPECT_TRUE(slots.Describe(d) == "one of b, d" || slots.Describe(d) == "one of c, d");
  for (int i = 0; i < 20; ++i) slots.Assign("e" + std::to_string(i), all);
  EXPECT_NE(slots.Describe(0).find(" more"), std::string::npos);
  EXPECT_EQ(PeerSlots(1).Describe(0), "");
}

TEST(PeerSlots, SeveralPeersAreNamedInTheirOrderAndTheRestIsCounted) {
  EXPECT_EQ(DescribeOneOf({}), "");
  EXPECT_EQ(DescribeOneOf({"d"}), "d");
  EXPECT_EQ(DescribeOneOf({"d", "a"}), "one of d, a");
  EXPECT_EQ(DescribeOneOf({"f", "e", "d", "c"}), "one of f, e, d, c");
  EXPECT_EQ(DescribeOneOf({"f", "e", "d", "c", "b", "a"}), "one of f, e, d, c and 2 more");
}

TEST(PeerText, IsAsGrpcWritesIt) {
  sockaddr_storage name = {};
  auto& six = reinterpret_cast<sockaddr_in6&>(name);
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(4'711);
  ASSERT_EQ(inet_pton(AF_INET6, "::ffff:10.0.0.9", &six.sin6_addr), 1);
  EXPECT_EQ(PeerText(name), "ipv4:10.0.0.9:4711");
  ASSERT_EQ(inet_pton(AF_INET6, "fe80::1", &six.sin6_addr), 1);
  EXPECT_EQ(PeerText(name), "ipv6:[fe80::1]:4711");
  auto& four = reinterpret_cast<sockaddr_in&>(name);
  four.sin_family = AF_INET;
  ASSERT_EQ(inet_pton(AF_INET, "10.0.0.9", &four.sin_addr), 1);
  EXPECT_EQ(PeerText(name), "ipv4:10.0.0.9:4711");
}

}  // namespace
}  // namespace neurontrace
