// SPDX-License-Identifier: Apache-2.0
// A real server on loopback, asked by a plain socket.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "lib/health/health_server.h"
#include "lib/health/health_state.h"
#include "lib/health/http_test_support.h"

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Counts the POSTs, and refuses all that are not named "a".
class FakePostHandler final : public PostHandler {
 public:
  PostAnswer TakePost(const PostRequest& request) override {
    ++taken;
    if (request.name != "a") return {429, "later\n", 7};
    return {202, request.name + " " + request.body};
  }

  std::atomic<int> taken = 0;
};

TEST(HealthServer, TakesPostsUnderAPrefixWithinReason) {
  auto registry = std::make_shared<prometheus::Registry>();
  HealthState state;
  FakePostHandler handler;
  auto server = HealthServer::Start("127.0.0.1:0", registry, state);
  ASSERT_TRUE(server.ok()) << server.status();
  (*server)->AddPostPage({.prefix = "/triggers/", .body_bytes_max = 8, .handler = &handler});
  const int port = (*server)->port();
  EXPECT_THAT(Post(port, "/triggers/a", "why"), StartsWith("HTTP/1.1 202 Accepted"));
  EXPECT_THAT(Post(port, "/triggers/a", "why"), HasSubstr("\r\n\r\na why"));
  EXPECT_THAT(Post(port, "/triggers/a", ""), HasSubstr("\r\n\r\na "));
  EXPECT_THAT(Post(port, "/triggers/a", "12345678"), StartsWith("HTTP/1.1 202"));
  EXPECT_THAT(Post(port, "/triggers/b", ""), HasSubstr("429 Too Many Requests"));
  EXPECT_THAT(Post(port, "/triggers/b", ""), HasSubstr("Retry-After: 7\r\n"));
  EXPECT_EQ(handler.taken, 6);
  EXPECT_THAT(Post(port, "/triggers/a", "123456789"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Post(port, "/triggers/a", "", "Origin: http://evil.example\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Get(port, "/triggers/a"), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(Post(port, "/healthz", ""), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(Post(port, "/triggersx", "why"), HasSubstr(" 405 "));
  EXPECT_EQ(handler.taken, 6);
  EXPECT_THAT(Get(port, "/healthz"), StartsWith("HTTP/1.1 200"));
}

TEST(HealthServer, ServesMetricsAndConditionsOnOnePort) {
  auto registry = std::make_shared<prometheus::Registry>();
  prometheus::BuildCounter()
      .Name("neurontrace_test_total")
      .Register(*registry)
      .Add({})
      .Increment(3);
  HealthState state;
  state.Declare("aggregator", HealthState::Severity::kReadiness, "not connected yet");
  auto server = HealthServer::Start("127.0.0.1:0", registry, state);
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  EXPECT_THAT(Get(port, "/metrics"),
              AllOf(HasSubstr("neurontrace_test_total 3"),
                    HasSubstr("neurontrace_health_refused_total{reason=\"connections\"} 0"),
                    HasSubstr("neurontrace_health_refused_total{reason=\"busy\"} 0")));
  EXPECT_THAT(Get(port, "/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(port, "/readyz"), StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(Get(port, "/readyz"), HasSubstr("NOT aggregator: not connected yet"));
  state.Set("aggregator", true);
  EXPECT_THAT(Get(port, "/readyz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get(port, "/nothing"), HasSubstr(" 404 "));
}

// A browser asks by the name of the page that it shows, whatever address that name has.
TEST(HealthServer, AnswersNoPageWhoseNameLeadsHere) {
  auto registry = std::make_shared<prometheus::Registry>();
  HealthState state;
  FakePostHandler handler;
  auto server = HealthServer::Start("127.0.0.1:0", registry, state, {"agg.example.com"});
  ASSERT_TRUE(server.ok()) << server.status();
  (*server)->AddPostPage({.prefix = "/triggers/", .body_bytes_max = 8, .handler = &handler});
  const int port = (*server)->port();
  const auto ask = [port](const std::string& method, const std::string& path,
                          const std::string& hosts) {
    return Ask(port, method + " " + path + " HTTP/1.1\r\n" + hosts + "Content-Length: 0\r\n\r\n");
  };
  for (const char* const path : {"/", "/metrics", "/statusz", "/nothing"}) {
    EXPECT_THAT(ask("GET", path, "Host: evil.example:9402\r\n"), StartsWith("HTTP/1.1 421"));
    EXPECT_THAT(ask("GET", path, "Host: localhost\r\nHost: evil.example\r\n"),
                ::testing::Not(StartsWith("HTTP/1.1 200")));
  }
  EXPECT_THAT(ask("POST", "/triggers/a", "Host: evil.example\r\n"), StartsWith("HTTP/1.1 421"));
  EXPECT_EQ(handler.taken, 0);
  EXPECT_THAT(ask("GET", "/healthz", "Host: evil.example\r\n"), StartsWith("HTTP/1.1 200"));
  for (const char* const host :
       {"Host: localhost:9402\r\n", "Host: agg.example.com\r\n", "Host: 10.1.2.3\r\n"}) {
    EXPECT_THAT(ask("GET", "/metrics", host), StartsWith("HTTP/1.1 200")) << host;
  }
  EXPECT_THAT(ask("GET", "/metrics", "Host: localhost\r\n"),
              HasSubstr("neurontrace_health_refused_total{reason=\"host\"}"));
}

TEST(HealthServer, ServesAPageForPeople) {
  auto registry = std::make_shared<prometheus::Registry>();
  HealthState state;
  state.Declare("store", HealthState::Severity::kReadiness, "not open");
  auto server = HealthServer::Start("127.0.0.1:0", registry, state);
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_THAT(Get((*server)->port(), "/statusz"), HasSubstr(" 404 "));
  bool was_local = false;
  (*server)->AddStatusPage({.program = "neurontrace-test",
                            .build = "neurontrace-test 1.2.3",
                            .tables = [&was_local](bool is_local) {
                              was_local = is_local;
                              return std::vector<StatusTable>{{"Workers", {}, {{"4711"}}}};
                            }});
  const std::string reply = Get((*server)->port(), "/statusz");
  EXPECT_THAT(reply, HasSubstr("Content-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(reply, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(reply, HasSubstr("NOT store: not open"));
  EXPECT_THAT(reply, HasSubstr("<td>4711"));
  EXPECT_TRUE(was_local);
}

TEST(HealthServer, SuggestsRemedyWhenPortIsInUse) {
  auto registry = std::make_shared<prometheus::Registry>();
  HealthState state;
  auto first = HealthServer::Start("127.0.0.1:0", registry, state);
  ASSERT_TRUE(first.ok());
  const auto second =
      HealthServer::Start("127.0.0.1:" + std::to_string((*first)->port()), registry, state);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--health-address"));
}

// For ThreadSanitizer: pages are made on the server's threads while conditions change.
TEST(HealthServer, AnswersWhileConditionsChange) {
  auto registry = std::make_shared<prometheus::Registry>();
  HealthState state;
  state.Declare("store", HealthState::Severity::kLiveness, "");
  auto server = HealthServer::Start("127.0.0.1:0", registry, state);
  ASSERT_TRUE(server.ok()) << server.status();
  std::atomic<bool> stop = false;
  std::thread changer([&] {
    for (bool good = false; !stop; good = !good) state.Set("store", good, "disk full");
  });
  for (int i = 0; i < 30; ++i) {
    const std::string reply = Get((*server)->port(), i % 2 == 0 ? "/healthz" : "/readyz");
    EXPECT_THAT(reply,
                ::testing::AnyOf(HasSubstr("ok store\n"), HasSubstr("NOT store: disk full\n")));
  }
  stop = true;
  changer.join();
}

TEST(HealthState, ALostLivenessConditionCountsForBoth) {
  HealthState state;
  state.Declare("store", HealthState::Severity::kLiveness, "");
  EXPECT_TRUE(state.live());
  state.Set("store", false, "disk full");
  EXPECT_FALSE(state.live());
  EXPECT_FALSE(state.ready());
  EXPECT_EQ(state.Describe(true), "NOT store: disk full\n");
}

const std::vector<std::string> kNames = {"Agg.Example.com"};

TEST(HostNames, AddressesAndNamesOfThisMachineAreItsOwn) {
  for (const char* const host :
       {"", "127.0.0.1", "127.0.0.1:9402", "10.1.2.3:80", "[::1]:9402", "[fe80::1]", "localhost",
        "LOCALHOST:9402", "localhost.", "aggregator", "neurontrace-aggregator:9402",
        "agg.ns.svc.cluster.local:9402", "ip-10-0-0-1.ec2.internal", "x.localhost", "my_host",
        "agg.example.com", "AGG.example.com.:9402"}) {
    EXPECT_TRUE(IsLocalHost(host, kNames)) << host;
  }
}

TEST(HostNames, RegistrableNamesAreNotLocal) {
  for (const char* const host :
       {"evil.example", "evil.example:9402", "127.0.0.1.evil.example", "localhost.evil.example",
        "example.com", "x.agg.example.com", "agg.example.com.evil.net", "notlocal", "[::1",
        "[evil.example]:9402", "[::1].evil.example", "127.0.0.1:9402.evil.example", "a b",
        "evil.local.", "evil.com:", "http://127.0.0.1", "127.0.0.1@evil.example", ":9402", "."}) {
    // A single label and what ends with .local cannot be registered.
    const bool is_private = std::string(host) == "notlocal" || std::string(host) == "evil.local.";
    EXPECT_EQ(IsLocalHost(host, kNames), is_private) << host;
  }
  EXPECT_FALSE(IsLocalHost("agg.example.com", {}));
}

}  // namespace
}  // namespace neurontrace
