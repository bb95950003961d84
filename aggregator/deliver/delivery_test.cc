// SPDX-License-Identifier: Apache-2.0
// Goal: whatever happens between two steps, what stands under its name is whole, the manifest is
// there only when everything is, and the same delivery again brings it to its end. A volume in
// memory dies before each of its changes in turn.
#include "aggregator/deliver/delivery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "aggregator/deliver/fake_volume.h"
#include "aggregator/deliver/manifest.h"

namespace neurontrace {
namespace {

CaptureId TestCaptureId() { return *CaptureId::Parse("01JD0000000000000000000000"); }

class DeliveryTest : public ::testing::Test {
 protected:
  absl::Status WriteStep(Delivery& delivery, const std::string& step, const std::string& request,
                         const std::vector<std::pair<std::string, std::string>>& files) {
    if (delivery.FindDone(step, request) != nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(OutputFiles* const out, delivery.BeginStep(step, request, "dir/" + step));
    for (const auto& [name, bytes] : files) {
      ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, out->Open(name));
      RETURN_IF_ERROR(file->Write(bytes));
      RETURN_IF_ERROR(file->Close());
    }
    return delivery.EndStep({.verdict = "complete", .capture_incomplete = false});
  }

  absl::Status Deliver(Volume& volume, const std::string& request = "r1") {
    ASSIGN_OR_RETURN(const auto delivery,
                     Delivery::Begin(volume, {TestCaptureId(), "me", "test"}, clock_));
    RETURN_IF_ERROR(WriteStep(*delivery, "a", request, {{"one", "first"}, {"sub/two", "second"}}));
    RETURN_IF_ERROR(WriteStep(*delivery, "b", "r", {{"three", "third"}}));
    RETURN_IF_ERROR(delivery->Finish());
    written_ = delivery->files_written();
    there_ = delivery->files_there();
    return absl::OkStatus();
  }

  std::string At(const std::string& name) { return disk_.files[directory_ + "/" + name]; }
  bool Has(const std::string& name) { return disk_.files.contains(directory_ + "/" + name); }
  // Of whatever the manifest says, nothing is wrong.
  void CheckManifest() {
    const auto manifest = ParseManifest(At("manifest.json"));
    ASSERT_TRUE(manifest.ok()) << manifest.status();
    EXPECT_TRUE(manifest->complete());
    for (const auto& step : manifest->steps()) {
      EXPECT_TRUE(step.done());
      for (const auto& file : step.files()) {
        Sha256 hash;
        hash.Update(disk_.files.at(file.name()));
        EXPECT_EQ(HexOf(hash.Finish()), file.sha256()) << file.name();
      }
    }
  }

  FakeVolume::Disk disk_;
  FakeClock clock_;
  const std::string directory_ = "neurontrace_" + TestCaptureId().ToString();
  uint64_t written_ = 0;
  uint64_t there_ = 0;
};

TEST_F(DeliveryTest, WritesStepsManifestAndChecksums) {
  FakeVolume volume(disk_);
  ASSERT_TRUE(Deliver(volume).ok());
  EXPECT_EQ(disk_.files.at("dir/a/one"), "first");
  EXPECT_EQ(disk_.files.at("dir/a/sub/two"), "second");
  CheckManifest();
  EXPECT_FALSE(Has("manifest.partial.json"));
  EXPECT_THAT(At("SHA256SUMS"), ::testing::HasSubstr("  dir/a/sub/two\n"));
  EXPECT_EQ(disk_.files.size(), 5u) << "no claim and nothing temporary is left";
  EXPECT_EQ(written_, 3u);
}

TEST_F(DeliveryTest, TheSameAgainWritesNothing) {
  FakeVolume volume(disk_);
  ASSERT_TRUE(Deliver(volume).ok());
  const auto before = disk_.files;
  ASSERT_TRUE(Deliver(volume).ok());
  EXPECT_EQ(disk_.files, before);
  EXPECT_EQ(written_, 0u);
  EXPECT_EQ(there_, 3u);
}

TEST_F(DeliveryTest, AFileThatIsGoneOrShorterIsWrittenAgain) {
  FakeVolume volume(disk_);
  ASSERT_TRUE(Deliver(volume).ok());
  disk_.files["dir/a/one"] = "f";
  disk_.files.erase("dir/b/three");
  ASSERT_TRUE(Deliver(volume).ok());
  EXPECT_EQ(disk_.files.at("dir/a/one"), "first");
  EXPECT_EQ(disk_.files.at("dir/b/three"), "third");
  CheckManifest();
}

TEST_F(DeliveryTest, AnotherRequestReplacesItsStepAloneAndRemovesWhatItDoesNotMake) {
  FakeVolume volume(disk_);
  ASSERT_TRUE(Deliver(volume).ok());
  {
    const auto delivery = Delivery::Begin(volume, {TestCaptureId(), "me", "test"}, clock_);
    ASSERT_TRUE(delivery.ok());
    ASSERT_TRUE(WriteStep(**delivery, "a", "r2", {{"one", "other"}}).ok());
    EXPECT_FALSE(Has("manifest.json")) << "while one of its files is another";
    ASSERT_TRUE((*delivery)->Finish().ok());
  }
  EXPECT_EQ(disk_.files.at("dir/a/one"), "other");
  EXPECT_FALSE(disk_.files.contains("dir/a/sub/two"));
  EXPECT_EQ(disk_.files.at("dir/b/three"), "third");
  CheckManifest();
}

TEST_F(DeliveryTest, DiedAtAnyMomentTheNextOneBringsItToItsEnd) {
  for (const bool renames : {true, false}) {
    uint64_t steps = 0;
    for (uint64_t dies_at = 1;; ++dies_at) {
      disk_ = {.renames = renames};
      FakeVolume dying(disk_, dies_at);
      const absl::Status died = Deliver(dying);
      if (died.ok()) break;
      ++steps;
      if (renames) {
        for (const auto& [name, bytes] : disk_.files) {
          if (name.ends_with("/one")) {
            EXPECT_EQ(bytes, "first");
          }
          if (name.ends_with("/two")) {
            EXPECT_EQ(bytes, "second");
          }
        }
      }
      // The claim of the dead counts until its lease is over.
      clock_.AdvanceNs(Claim::kClaimLeaseNs + 2 * Claim::kClaimGraceNs);
      disk_.realtime_ns = clock_.RealtimeNs() - Claim::kClaimLeaseNs - 2 * Claim::kClaimGraceNs;
      FakeVolume next(disk_);
      const absl::Status status = Deliver(next);
      ASSERT_TRUE(status.ok()) << status << " after a death at " << dies_at;
      CheckManifest();
      EXPECT_FALSE(Has("manifest.partial.json"));
      EXPECT_EQ(disk_.files.size(), 5u) << "after a death at " << dies_at;
    }
    EXPECT_GT(steps, 15u);
  }
}

TEST_F(DeliveryTest, AFullVolumeFailsItAndRoomLetsItGoOn) {
  FakeVolume volume(disk_);
  disk_.bytes_max = 900;
  {
    const auto delivery = Delivery::Begin(volume, {TestCaptureId(), "me", "test"}, clock_);
    ASSERT_TRUE(delivery.ok()) << delivery.status();
    const absl::Status full = WriteStep(**delivery, "a", "r1", {{"big", std::string(1000, 'x')}});
    EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  }
  EXPECT_FALSE(disk_.files.contains("dir/a/big"));
  EXPECT_FALSE(Has("manifest.json"));
  disk_.bytes_max = UINT64_MAX;
  ASSERT_TRUE(Deliver(volume).ok());
  CheckManifest();
}

TEST_F(DeliveryTest, OneAtATime) {
  FakeVolume volume(disk_);
  FakeVolume other(disk_);
  const auto first = Delivery::Begin(volume, {TestCaptureId(), "first", "test"}, clock_);
  ASSERT_TRUE(first.ok());
  const auto second = Delivery::Begin(other, {TestCaptureId(), "second", "test"}, clock_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), ::testing::HasSubstr("first"));
}

TEST_F(DeliveryTest, RefusesNamesThatLeadOut) {
  FakeVolume volume(disk_);
  const auto delivery = Delivery::Begin(volume, {TestCaptureId(), "me", "test"}, clock_);
  ASSERT_TRUE(delivery.ok());
  const auto files = (*delivery)->BeginStep("a", "r", "dir");
  ASSERT_TRUE(files.ok());
  for (const char* name : {"../x", "/x", "a//b", "", "a/../b", "a\nb"}) {
    EXPECT_EQ((*files)->Open(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

}  // namespace
}  // namespace neurontrace
