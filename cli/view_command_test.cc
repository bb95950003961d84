// SPDX-License-Identifier: Apache-2.0
// Goal: `view --shared` prints the address of the aggregator's page, and `view --store` refuses
// what is no store before it starts anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>

#include "cli/command_test_support.h"
#include "lib/base/temporary_directory.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ViewCommandTest : public CommandLineTest {};

TEST_F(ViewCommandTest, PrintsTheSharedPage) {
  service_.view_url = "https://traces.example/";
  EXPECT_EQ(RunCli({"view", "--shared"}), kExitDone);
  EXPECT_EQ(out_, "https://traces.example/\n");
  EXPECT_EQ(RunCli({"view", "--shared", kCaptureId}), kExitDone);
  EXPECT_EQ(out_, std::string("https://traces.example/capture/") + kCaptureId + "\n");
  EXPECT_EQ(RunCli({"--output", "json", "view", "--shared"}), kExitDone);
  EXPECT_EQ(out_, "{\"url\":\"https://traces.example/\"}\n");
}

TEST_F(ViewCommandTest, KeepsTheTokenOfAPageWithoutTls) {
  service_.view_url = "http://127.0.0.1:9403/?token=abc";
  EXPECT_EQ(RunCli({"view", "--shared", kCaptureId}), kExitDone);
  EXPECT_EQ(out_, std::string("http://127.0.0.1:9403/capture/") + kCaptureId + "?token=abc\n");
}

TEST_F(ViewCommandTest, ReportsThatThereIsNoSharedPage) {
  EXPECT_EQ(RunCli({"view", "--shared"}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("--view-address"));
  EXPECT_EQ(out_, "");
}

TEST_F(ViewCommandTest, AUsedPortIsReportedWithItsOptionAndAWayOut) {
  const TemporaryDirectory assets;
  std::ofstream(std::string(assets.path()) + "/index.html") << "<p>a page</p>";
  const UniqueFd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name = {};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof name;
  ASSERT_EQ(bind(taken.get(), reinterpret_cast<const sockaddr*>(&name), length), 0);
  ASSERT_EQ(listen(taken.get(), 1), 0);
  ASSERT_EQ(getsockname(taken.get(), reinterpret_cast<sockaddr*>(&name), &length), 0);
  const std::string address = "127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  EXPECT_EQ(RunCli({"view", "--web-assets", assets.path().c_str(), "--listen", address.c_str()}),
            kExitFailed);
  EXPECT_THAT(err_, AllOf(HasSubstr("--listen: cannot listen on " + address),
                          HasSubstr("choose another port")));
}

TEST_F(ViewCommandTest, RefusesWhatIsNoStore) {
  const TemporaryDirectory empty;
  EXPECT_EQ(RunCli({"view", "--store", empty.path().c_str()}), kExitFailed);
  EXPECT_THAT(err_, HasSubstr("there is no store in"));
  EXPECT_TRUE(std::filesystem::is_empty(empty.path()));
  EXPECT_EQ(RunCli({"view", "--store", empty.path().c_str(), "--shared"}), kExitUsage);
}

}  // namespace
}  // namespace neurontrace::cli
