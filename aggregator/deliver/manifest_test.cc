// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/manifest.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

v1::DeliveryManifest Example() {
  v1::DeliveryManifest manifest;
  manifest.set_format_version(kManifestVersion);
  manifest.set_producer("neurontrace \"1\"");
  manifest.set_capture_id("01JD");
  v1::DeliveredStep& step = *manifest.add_steps();
  step.set_name("perfetto");
  step.set_request("r");
  step.set_done(true);
  step.set_verdict("complete:\nall");
  v1::DeliveredFile& file = *step.add_files();
  file.set_name("d/system_profile.pftrace");
  file.set_bytes(18'000'000'000'000'000'001ull);
  file.set_sha256(std::string(64, 'a'));
  v1::UnfinishedFile& unfinished = *manifest.add_unfinished();
  unfinished.set_name("d/x.ntff");
  unfinished.set_token("{\"upload\":1}");
  manifest.add_directories("d");
  return manifest;
}

TEST(ManifestTest, IsReadAsItWasWritten) {
  const std::string text = FormatManifest(Example());
  EXPECT_NE(text.find("\"bytes\":18000000000000000001,"), std::string::npos) << "a number";
  const auto read = ParseManifest(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), Example().SerializeAsString());
  EXPECT_EQ(FormatChecksums(*read), std::string(64, 'a') + "  d/system_profile.pftrace\n");
}

TEST(ManifestTest, RefusesWhatLeadsOutAndWhatIsHalf) {
  const std::string text = FormatManifest(Example());
  for (size_t size = 0; size < text.size() - 2; size += 7) {
    EXPECT_FALSE(ParseManifest(text.substr(0, size)).ok()) << size;
  }
  v1::DeliveryManifest bad = Example();
  bad.mutable_steps(0)->mutable_files(0)->set_name("../x");
  EXPECT_EQ(ParseManifest(FormatManifest(bad)).status().code(), absl::StatusCode::kDataLoss);
  bad = Example();
  bad.mutable_steps(0)->mutable_files(0)->set_sha256("A");
  EXPECT_FALSE(ParseManifest(FormatManifest(bad)).ok());
  bad = Example();
  bad.set_directories(0, "/etc");
  EXPECT_FALSE(ParseManifest(FormatManifest(bad)).ok());
  bad = Example();
  bad.set_format_version(2);
  EXPECT_FALSE(ParseManifest(FormatManifest(bad)).ok());
}

TEST(ManifestTest, FieldsOfALaterProgramAreLeftOut) {
  EXPECT_TRUE(ParseManifest("{\"format_version\":1,\"new\":{\"a\":[1]}}").ok());
}

TEST(ManifestTest, ClaimsAreReadAsTheyWereWritten) {
  v1::DeliveryClaim claim;
  claim.set_owner("agg \"x\"");
  claim.set_lease_until_realtime_ns(1'700'000'000'000'000'001);
  const auto read = ParseClaim(FormatClaim(claim));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), claim.SerializeAsString());
  EXPECT_FALSE(ParseClaim("{}").ok());
  EXPECT_FALSE(ParseClaim("{\"owner\":").ok());
}

}  // namespace
}  // namespace neurontrace
