// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/trace/delivery_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

v1::DeliveryManifest Example() {
  v1::DeliveryManifest manifest;
  manifest.set_format_version(kManifestVersion);
  manifest.set_producer("neurontrace \"1\"");
  manifest.set_capture_id("01JD");
  v1::DeliveredStep& step = *manifest.add_steps();
  step.set_name("perfetto");
  step.set_request("r");
  step.set_done(true);
  step.set_verdict("complete: \"all\"");
  v1::DeliveredFile& file = *step.add_files();
  file.set_name("neurontrace_01JD/system_profile.pftrace");
  file.set_bytes(18'000'000'000'000'000'001ull);
  file.set_sha256(std::string(64, 'a'));
  v1::UnfinishedFile& unfinished = *manifest.add_unfinished();
  unfinished.set_name("i-1_pid_7/1776672348756756905/x.ntff");
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
  EXPECT_EQ(FormatChecksums(*read),
            std::string(64, 'a') + "  neurontrace_01JD/system_profile.pftrace\n");
}

TEST(ManifestTest, RejectsEscapingAndPartialManifests) {
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

TEST(ManifestTest, NamesAreOfTheCaptureOrOfTheVendorsLayout) {
  const auto reads = [](const std::string& name) {
    v1::DeliveryManifest manifest = Example();
    manifest.mutable_steps(0)->mutable_files(0)->set_name(name);
    v1::DeliveryManifest unfinished = Example();
    unfinished.mutable_unfinished(0)->set_name(name);
    const bool is_read = ParseManifest(FormatManifest(manifest)).ok();
    EXPECT_EQ(ParseManifest(FormatManifest(unfinished)).ok(), is_read) << name;
    return is_read;
  };
  for (const char* good :
       {"neurontrace_01JD/system_profile.pftrace", "neurontrace_01JD/parquet/claim.x",
        "i-1_pid_7/1776672348756756905/profile.ntff", "i-1_pid_7_0123456789ab/ntrace.pb",
        "neffs/model.neff", "agent-0123456789ab/i-1_pid_7/1776672348756756905/ntrace.pb",
        "agent-0123456789ab/neffs/model.neff", "root-0123456789ab/i-1_pid_7/ntrace.pb",
        "agent-0123456789ab/root-0123456789ab/neffs/model.neff",
        "i-1_pid_7/1776672348756756905/neurontrace.json",
        "i-1_pid_7_c_99/1776672348756756905/neurontrace.json"}) {
    EXPECT_TRUE(reads(good)) << good;
  }
  for (const char* bad :
       {"neurontrace_01JE/manifest.json", "neurontrace_01JD/manifest.json",
        "neurontrace_01JD/claim.1.json", "neurontrace_01JD/SHA256SUMS", "neurontrace_01JD",
        "neurontrace_01JD/../x", "x", "d/x", "i-1_pid_7/session/neurontrace.json",
        "a/b/1776672348756756905/neurontrace.json", "i-1_pid_7/1776672348756756905/notes.txt",
        "agent-x/neffs/model.neff", "root-0123456789ab/agent-0123456789ab/neffs/model.neff"}) {
    EXPECT_FALSE(reads(bad)) << bad;
  }
}

TEST(ManifestTest, ForeignTextIsSafeForLogs) {
  v1::DeliveryManifest manifest = Example();
  manifest.mutable_steps(0)->set_verdict("a\x1b[2Jb");
  EXPECT_EQ(ParseManifest(FormatManifest(manifest))->steps(0).verdict(), "a?[2Jb");
  v1::DeliveryClaim claim;
  claim.set_owner("a\nb");
  EXPECT_EQ(ParseClaim(FormatClaim(claim))->owner(), "a?b");
}

std::string Repeated(const std::string& part, size_t times) {
  std::string text = part;
  for (size_t i = 1; i < times; ++i) text += "," + part;
  return text;
}

// 8 MiB of nothing but steps took 400 MB.
TEST(ManifestTest, RejectsOversizedManifest) {
  const auto of = [](const std::string& list, const std::string& part, size_t times) {
    const auto read =
        ParseManifest("{\"format_version\":1,\"" + list + "\":[" + Repeated(part, times) + "]}");
    EXPECT_TRUE(read.ok() || absl::IsDataLoss(read.status())) << read.status();
    return read.status();
  };
  constexpr size_t kMost = limits::kManifestEntriesMax;
  const std::string unfinished = "{\"name\":\"neurontrace_/x\"}";
  EXPECT_TRUE(of("steps", "{}", kMost).ok());
  EXPECT_THAT(of("steps", "{}", kMost + 1).message(), HasSubstr("steps"));
  EXPECT_THAT(of("unfinished", unfinished, kMost + 1).message(), HasSubstr("unfinished"));
  EXPECT_THAT(of("directories", "\"d\"", kMost + 1).message(), HasSubstr("directories"));
  EXPECT_THAT(of("steps", "{}", limits::kManifestObjectsMax).message(), HasSubstr("objects"));
  EXPECT_THAT(of("new", "{}", limits::kManifestObjectsMax).message(), HasSubstr("objects"));
  EXPECT_THAT(of("new", "\"\"", limits::kManifestCommasMax + 1).message(), HasSubstr("values"));
}

TEST(ManifestTest, IgnoresBracketsInStrings) {
  const auto read = ParseManifest("{\"format_version\":1,\"producer\":\"\\\"" +
                                  Repeated("{", limits::kManifestCommasMax + 1) + "\"}");
  EXPECT_TRUE(read.ok()) << read.status();
  const ManifestCounts counts = CountManifest("{'\"{,':\"\\\",{\",\"a\":[{},'\\\\',{}]}");
  EXPECT_EQ(counts.objects, 3u);
  EXPECT_EQ(counts.commas, 3u);
}

TEST(ManifestTest, FieldsOfALaterProgramAreLeftOut) {
  EXPECT_TRUE(ParseManifest("{\"format_version\":1,\"new\":{\"a\":[1]}}").ok());
}

TEST(ManifestTest, ClaimsAreReadAsTheyWereWritten) {
  v1::DeliveryClaim claim;
  claim.set_owner("agg \"x\"");
  claim.set_lease_until_realtime_ns(1'700'000'000'000'000'001);
  claim.set_lock("store");
  claim.set_run("7");
  const auto read = ParseClaim(FormatClaim(claim));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->SerializeAsString(), claim.SerializeAsString());
  EXPECT_FALSE(ParseClaim("{}").ok());
  EXPECT_FALSE(ParseClaim("{\"owner\":").ok());
}

}  // namespace
}  // namespace neurontrace
