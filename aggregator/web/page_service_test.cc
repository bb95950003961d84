// SPDX-License-Identifier: Apache-2.0
// Goal: the service serves the page where it is configured, names its address, and ends.
#include "aggregator/web/page_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

class PageServiceTest : public ::testing::Test {
 protected:
  PageServiceTest() {
    access_ = AccessControl::Open({.audit_log = directory_ / "audit.log",
                                   .listen = "127.0.0.1:9400",
                                   .calls_per_second = 100},
                                  {registry_, clock_, clock_})
                  .value();
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~PageServiceTest() override { server_->Shutdown(); }

  std::unique_ptr<PageService> Make(PageService::Options options) {
    return std::make_unique<PageService>(std::move(options),
                                         PageService::Deps{*access_, registry_, clock_, random_});
  }
  absl::Status Start(PageService& page) { return page.Start(server_->InProcessChannel({})); }
  bool HasMetric(const std::string& name) {
    for (const auto& family : registry_.Collect()) {
      if (family.name == name) return true;
    }
    return false;
  }

  TemporaryDirectory directory_;
  prometheus::Registry registry_;
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<AccessControl> access_;
  v1::OperatorService::Service service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(PageServiceTest, ServesNothingUnlessConfigured) {
  const auto page = Make({});
  EXPECT_TRUE(Start(*page).ok());
  EXPECT_EQ(page->PageUrl(), "");
  EXPECT_EQ(page->port(), 0);
  page->ReloadChangedFiles(true);
  page->PublishMetrics();
  EXPECT_FALSE(HasMetric("neurontrace_aggregator_page_connections"));
}

TEST_F(PageServiceTest, NamesItsAddressWithTheTokenUntilItEnds) {
  const auto page = Make({.address = "127.0.0.1:0"});
  EXPECT_EQ(page->PageUrl(), "");
  ASSERT_TRUE(Start(*page).ok());
  EXPECT_GT(page->port(), 0);
  EXPECT_THAT(page->PageUrl(), MatchesRegex("http://127\\.0\\.0\\.1:[0-9]+/\\?token=[0-9a-f]+"));
  page->PublishMetrics();
  EXPECT_TRUE(HasMetric("neurontrace_aggregator_page_connections"));
  page->Stop();
  EXPECT_EQ(page->PageUrl(), "");
  page->PublishMetrics();
}

TEST_F(PageServiceTest, NamesTheAddressThatPeopleUse) {
  const auto named = Make({.address = "127.0.0.1:0", .hosts = {"page.example", "other"}});
  ASSERT_TRUE(Start(*named).ok());
  EXPECT_THAT(named->PageUrl(), MatchesRegex("http://page\\.example:[0-9]+/\\?token=.*"));
  const auto everywhere = Make({.address = "0.0.0.0:0"});
  ASSERT_TRUE(Start(*everywhere).ok());
  EXPECT_THAT(everywhere->PageUrl(), MatchesRegex("http://localhost:[0-9]+/.*"));
  const auto proxied = Make({.address = "127.0.0.1:0", .url = "https://traces.example/"});
  ASSERT_TRUE(Start(*proxied).ok());
  EXPECT_THAT(proxied->PageUrl(), MatchesRegex("https://traces\\.example/\\?token=.*"));
}

TEST_F(PageServiceTest, ReportsWhatCannotBeUsed) {
  const auto first = Make({.address = "127.0.0.1:0"});
  ASSERT_TRUE(Start(*first).ok());
  const auto second = Make({.address = "127.0.0.1:" + std::to_string(first->port())});
  EXPECT_THAT(Start(*second).message(), HasSubstr("cannot listen on 127.0.0.1:"));
  const auto without_files =
      Make({.address = "127.0.0.1:0",
            .security = {.ca = "/nowhere/ca.pem", .cert = "/nowhere/a.pem", .key = "/nowhere/k"}});
  EXPECT_THAT(Start(*without_files).message(), HasSubstr("/nowhere/a.pem"));
}

}  // namespace
}  // namespace neurontrace
