// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/certificate_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "lib/base/clock.h"
#include "lib/base/small_file.h"
#include "lib/wire/pem_files.h"
#include "lib/wire/test_certificates.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class CertificateEndsTest : public ::testing::Test {
 protected:
  std::string Issue() {
    certificates_.Issue("a", {});
    return ReadSmallFile(certificates_.cert("a"), 1 << 20).value();
  }

  TestCertificates certificates_;
  FakeClock clock_;
};

TEST_F(CertificateEndsTest, ACertificateIsGoodUntilItsEndAndNoLonger) {
  CertificateEnds ends(clock_);
  const std::string pem = Issue();
  const uint64_t end_ns = static_cast<uint64_t>(EndOfCertificate(pem).value()) * 1'000'000'000;
  EXPECT_TRUE(ends.Check(pem).ok());
  clock_.AdvanceNs(end_ns - clock_.RealtimeNs());
  EXPECT_TRUE(ends.Check(pem).ok());
  clock_.AdvanceNs(1'000'000'000);
  const absl::Status over = ends.Check(pem);
  EXPECT_TRUE(absl::IsUnauthenticated(over));
  EXPECT_THAT(std::string(over.message()), HasSubstr("expired at 2"));
  EXPECT_EQ(ends.known(), 1u);
}

TEST_F(CertificateEndsTest, RefusesUnreadableCertificateWithoutCachingIt) {
  CertificateEnds ends(clock_);
  EXPECT_TRUE(absl::IsUnauthenticated(ends.Check("")));
  EXPECT_TRUE(absl::IsUnauthenticated(ends.Check("no certificate")));
  EXPECT_EQ(ends.known(), 0u);
}

TEST_F(CertificateEndsTest, SoManyAreRemembered) {
  CertificateEnds ends(clock_, 2);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(ends.Check(Issue()).ok());
  EXPECT_LE(ends.known(), 2u);
}

}  // namespace
}  // namespace neurontrace
