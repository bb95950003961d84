// SPDX-License-Identifier: Apache-2.0
#include "health/host_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace neurontrace {
namespace {

const std::vector<std::string> kNames = {"Agg.Example.com"};

TEST(HostNames, AddressesAndNamesOfThisMachineAreItsOwn) {
  for (const char* const host :
       {"", "127.0.0.1", "127.0.0.1:9402", "10.1.2.3:80", "[::1]:9402", "[fe80::1]", "localhost",
        "LOCALHOST:9402", "localhost.", "aggregator", "neurontrace-aggregator:9402",
        "agg.ns.svc.cluster.local:9402", "ip-10-0-0-1.ec2.internal", "x.localhost", "my_host",
        "agg.example.com", "AGG.example.com.:9402"}) {
    EXPECT_TRUE(IsOwnHost(host, kNames)) << host;
  }
}

TEST(HostNames, WhatSomebodyElseCouldRegisterIsNot) {
  for (const char* const host :
       {"evil.example", "evil.example:9402", "127.0.0.1.evil.example", "localhost.evil.example",
        "example.com", "x.agg.example.com", "agg.example.com.evil.net", "notlocal", "[::1",
        "[evil.example]:9402", "[::1].evil.example", "127.0.0.1:9402.evil.example", "a b",
        "evil.local.", "evil.com:", "http://127.0.0.1", "127.0.0.1@evil.example", ":9402", "."}) {
    // A single label and what ends with .local cannot be registered.
    const bool is_private = std::string(host) == "notlocal" || std::string(host) == "evil.local.";
    EXPECT_EQ(IsOwnHost(host, kNames), is_private) << host;
  }
  EXPECT_FALSE(IsOwnHost("agg.example.com", {}));
}

}  // namespace
}  // namespace neurontrace
