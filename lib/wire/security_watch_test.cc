// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/security_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/err.h>

#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>

#include "lib/base/time_units.h"
#include "lib/wire/pem_files.h"
#include "lib/wire/test_certificates.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

constexpr char kElsewhere[] = "aggregator.example:9400";

std::string ReadAll(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class SecurityWatchTest : public ::testing::Test {
 protected:
  SecurityWatchTest() { certificates_.Issue("a", {}); }

  // A file of certificates that are valid for as long from now.
  std::string Bundle(const std::vector<int64_t>& ends_s) {
    std::string text;
    for (const int64_t end_s : ends_s) {
      certificates_.Issue("part", {.valid_from_s = -7'200, .valid_until_s = end_s});
      text += ReadAll(certificates_.cert("part"));
    }
    return certificates_.Write("bundle.pem", text);
  }
  static int64_t SecondsFromNow(const absl::StatusOr<int64_t>& end) {
    return end.ok() ? *end - std::time(nullptr) : 0;
  }

  TestCertificates certificates_;
  FakeClock clock_;
  const ChannelSecurity security_ = {
      .ca = certificates_.ca(), .cert = certificates_.cert("a"), .key = certificates_.key("a")};
};

TEST_F(SecurityWatchTest, AuthoritiesAreGoodAsLongAsOneIs) {
  EXPECT_NEAR(SecondsFromNow(CheckAuthorityFile(Bundle({-60, 900}))), 900, 30);
  EXPECT_NEAR(SecondsFromNow(CheckAuthorityFile(Bundle({900, -60}))), 900, 30);
  EXPECT_NEAR(SecondsFromNow(CheckAuthorityFile(Bundle({900, 500}))), 500, 30);
  EXPECT_THAT(std::string(CheckAuthorityFile(Bundle({-60, -90})).status().message()),
              HasSubstr("expired at 2"));
  EXPECT_NEAR(SecondsFromNow(AuthorityEnd(Bundle({-60, 900}))), 900, 30);
  EXPECT_NEAR(SecondsFromNow(AuthorityEnd(Bundle({-90, -60}))), -60, 30);
  ChannelSecurity security = security_;
  security.ca = Bundle({-60, 900});
  EXPECT_TRUE(CheckSecurity(security, kElsewhere, ChannelSide::kServer).ok());
}

TEST_F(SecurityWatchTest, IgnoresPriorOpenSslErrors) {
  ERR_raise(ERR_LIB_EC, EC_R_INVALID_CURVE);
  EXPECT_TRUE(CheckCertificateFile(certificates_.cert("a")).ok());
  ERR_raise(ERR_LIB_EC, EC_R_INVALID_CURVE);
  EXPECT_TRUE(CheckAuthorityFile(Bundle({900, 900})).ok());
}

TEST_F(SecurityWatchTest, OneAuthorityThatCannotBeReadIsNamed) {
  const std::string whole = ReadAll(Bundle({900, 900}));
  const std::string path = certificates_.Write("cut.pem", whole.substr(0, whole.size() - 200));
  EXPECT_THAT(std::string(CheckAuthorityFile(path).status().message()),
              HasSubstr("certificate 2 of " + path + " cannot be read"));
}

TEST_F(SecurityWatchTest, ReportsNewFilesAndTheirErrors) {
  SecurityWatch watch(security_, kElsewhere, ChannelSide::kServer, clock_);
  EXPECT_EQ(watch.Poll(), std::nullopt);
  certificates_.Write("a.pem", "no certificate");
  const auto bad = watch.Poll();
  ASSERT_TRUE(bad);
  EXPECT_THAT(std::string(bad->message()), HasSubstr("has no certificate"));
  clock_.AdvanceNs(61 * kNsPerSecond);
  EXPECT_EQ(watch.Poll(), std::nullopt) << "it was told";
  certificates_.Issue("a", {});
  EXPECT_EQ(watch.Poll(), absl::OkStatus());
  EXPECT_EQ(watch.Poll(), std::nullopt);
}

TEST_F(SecurityWatchTest, ReportsExpiryPerCertificate) {
  // OpenSSL looks at the machine's clock: as long as it takes to have a first look in time.
  std::unique_ptr<SecurityWatch> new_watch;
  int64_t valid_s = 1;
  do {
    valid_s *= 2;
    certificates_.Issue("a", {.valid_until_s = valid_s});
    new_watch =
        std::make_unique<SecurityWatch>(security_, kElsewhere, ChannelSide::kServer, clock_);
  } while (new_watch->Poll() != std::nullopt && valid_s < 100);
  SecurityWatch& watch = *new_watch;
  while (CheckSecurity(security_, kElsewhere, ChannelSide::kServer).ok()) {
  }
  EXPECT_EQ(watch.Poll(), std::nullopt);
  clock_.AdvanceNs(61 * kNsPerSecond);
  const auto ended = watch.Poll();
  ASSERT_TRUE(ended);
  EXPECT_THAT(std::string(ended->message()), HasSubstr("expired at"));
}

TEST_F(SecurityWatchTest, PlainTextReportsNothing) {
  SecurityWatch watch({}, "127.0.0.1:1", ChannelSide::kClient, clock_);
  clock_.AdvanceNs(61 * kNsPerSecond);
  EXPECT_EQ(watch.Poll(), std::nullopt);
  EXPECT_EQ(EndsOf({}).certificate, std::nullopt);
}

}  // namespace
}  // namespace neurontrace
