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
    ASSIGN_OR_RETURN(const v1::DeliveredStep* const there,
                     delivery.FindDone(step, request, [&] { return delivery.Keep(); }));
    if (there != nullptr) return absl::OkStatus();
    ASSIGN_OR_RETURN(OutputFiles* const out,
                     delivery.BeginStep(step, request, directory_ + "/" + step));
    for (const auto& [name, bytes] : files) {
      ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, out->Open(name));
      RETURN_IF_ERROR(file->Write(bytes));
      RETURN_IF_ERROR(file->Close());
    }
    return delivery.EndStep({.verdict = "complete", .capture_incomplete = false});
  }

  absl::Status Deliver(Volume& volume, const std::string& request = "r1") {
    ASSIGN_OR_RETURN(const auto delivery,
                     Delivery::Begin(volume, {TestCaptureId(), {.name = "me"}, "test"}, clock_));
    RETURN_IF_ERROR(WriteStep(*delivery, "a", request, {{"one", "first"}, {"sub/two", "second"}}));
    RETURN_IF_ERROR(WriteStep(*delivery, "b", "r", {{"three", "third"}}));
    RETURN_IF_ERROR(delivery->Finish());
    written_ = delivery->files_written();
    there_ = delivery->files_there();
    return absl::OkStatus();
  }

  std::string& At(const std::string& name) { return disk_.files[directory_ + "/" + name]; }
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

  absl::StatusOr<std::unique_ptr<Delivery>> Begin(Volume& volume) {
    return Delivery::Begin(volume, {TestCaptureId(), {.name = "me"}, "test"}, clock_);
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
  EXPECT_EQ(At("a/one"), "first");
  EXPECT_EQ(At("a/sub/two"), "second");
  CheckManifest();
  EXPECT_FALSE(Has("manifest.partial.json"));
  EXPECT_THAT(At("SHA256SUMS"), ::testing::HasSubstr("/a/sub/two\n"));
  EXPECT_EQ(disk_.files.size(), 5u) << "no claim and nothing temporary is left";
  EXPECT_EQ(written_, 3u);
}

TEST_F(DeliveryTest, RepeatedDeliveryWritesNothing) {
  FakeVolume volume(disk_);
  ASSERT_TRUE(Deliver(volume).ok());
  const auto before = disk_.files;
  ASSERT_TRUE(Deliver(volume).ok());
  EXPECT_EQ(disk_.files, before);
  EXPECT_EQ(written_, 0u);
  EXPECT_EQ(there_, 3u);
}

TEST_F(DeliveryTest, RewritesMissingOrTruncatedFile) {
  FakeVolume volume(disk_);
  ASSERT_TRUE(Deliver(volume).ok());
  At("a/one") = "f";
  disk_.files.erase(directory_ + "/b/three");
  ASSERT_TRUE(Deliver(volume).ok());
  EXPECT_EQ(At("a/one"), "first");
  EXPECT_EQ(At("b/three"), "third");
  CheckManifest();
}

TEST_F(DeliveryTest, OtherRequestReplacesOnlyItsStep) {
  FakeVolume volume(disk_);
  ASSERT_TRUE(Deliver(volume).ok());
  {
    const auto delivery =
        Delivery::Begin(volume, {TestCaptureId(), {.name = "me"}, "test"}, clock_);
    ASSERT_TRUE(delivery.ok());
    ASSERT_TRUE(WriteStep(**delivery, "a", "r2", {{"one", "other"}}).ok());
    EXPECT_FALSE(Has("manifest.json")) << "a file of the manifest has changed";
    ASSERT_TRUE((*delivery)->Finish().ok());
  }
  EXPECT_EQ(At("a/one"), "other");
  EXPECT_FALSE(Has("a/sub/two"));
  EXPECT_EQ(At("b/three"), "third");
  CheckManifest();
}

TEST_F(DeliveryTest, NextDeliveryCompletesInterruptedOne) {
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

TEST_F(DeliveryTest, AfterADeathBetweenTwoManifestsTheOldOneGoesBeforeAFileIsWritten) {
  FakeVolume volume(disk_);
  ASSERT_TRUE(Deliver(volume).ok());
  const std::string partial = directory_ + "/manifest.partial.json";
  for (const std::string& left : {At("manifest.json"), std::string("{\"format_ver")}) {
    disk_.files[partial] = left;
    ASSERT_TRUE(Has("manifest.json"));
    {
      const auto delivery =
          Delivery::Begin(volume, {TestCaptureId(), {.name = "me"}, "test"}, clock_);
      ASSERT_TRUE(delivery.ok());
      ASSERT_TRUE((*delivery)->BeginStep("a", "r3", directory_ + "/a").ok());
      EXPECT_FALSE(Has("manifest.json")) << "the step is about to change its files";
    }
    ASSERT_TRUE(Deliver(volume).ok());
    CheckManifest();
    EXPECT_FALSE(Has("manifest.partial.json"));
    // With nothing to do at all it is closed, too.
    disk_.files[partial] = left;
    ASSERT_TRUE(Deliver(volume).ok());
    CheckManifest();
    EXPECT_FALSE(Has("manifest.partial.json"));
  }
}

TEST_F(DeliveryTest, FullVolumeFailsAndSpaceResumes) {
  FakeVolume volume(disk_);
  disk_.bytes_max = 900;
  {
    const auto delivery =
        Delivery::Begin(volume, {TestCaptureId(), {.name = "me"}, "test"}, clock_);
    ASSERT_TRUE(delivery.ok()) << delivery.status();
    const absl::Status full = WriteStep(**delivery, "a", "r1", {{"big", std::string(1000, 'x')}});
    EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  }
  EXPECT_FALSE(Has("a/big"));
  EXPECT_FALSE(Has("manifest.json"));
  disk_.bytes_max = UINT64_MAX;
  ASSERT_TRUE(Deliver(volume).ok());
  CheckManifest();
}

TEST_F(DeliveryTest, OneAtATime) {
  FakeVolume volume(disk_);
  FakeVolume other(disk_);
  const auto first = Delivery::Begin(volume, {TestCaptureId(), {.name = "first"}, "test"}, clock_);
  ASSERT_TRUE(first.ok());
  const auto second = Delivery::Begin(other, {TestCaptureId(), {.name = "second"}, "test"}, clock_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()), ::testing::HasSubstr("first"));
}

TEST_F(DeliveryTest, RefusesNamesThatLeadOut) {
  FakeVolume volume(disk_);
  const auto delivery = Delivery::Begin(volume, {TestCaptureId(), {.name = "me"}, "test"}, clock_);
  ASSERT_TRUE(delivery.ok());
  const auto files = (*delivery)->BeginStep("a", "r", "dir");
  ASSERT_TRUE(files.ok());
  for (const char* name : {"../x", "/x", "a//b", "", "a/../b", "a\nb"}) {
    EXPECT_EQ((*files)->Open(name).status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
}

TEST_F(DeliveryTest, OneThatLostItsClaimLeavesTheManifestOfTheNextOne) {
  FakeVolume volume(disk_);
  FakeVolume other(disk_);
  const auto paused = Begin(volume);
  ASSERT_TRUE(paused.ok());
  clock_.AdvanceNs(Claim::kClaimLeaseNs + 2 * Claim::kClaimGraceNs);
  disk_.realtime_ns = clock_.RealtimeNs();
  ASSERT_TRUE(Deliver(other).ok());
  const auto before = disk_.files;
  EXPECT_EQ(WriteStep(**paused, "a", "r1", {{"one", "stale"}}).code(), absl::StatusCode::kAborted);
  EXPECT_EQ(disk_.files, before);
}

TEST_F(DeliveryTest, FileSyncedAfterClaimLossIsNotPublished) {
  FakeVolume volume(disk_);
  const auto delivery = Begin(volume);
  ASSERT_TRUE(delivery.ok());
  disk_.before = [this](const std::string& what, const std::string& name) {
    if (what == "sync" && name.ends_with("/one")) clock_.AdvanceNs(Claim::kClaimLeaseNs);
  };
  EXPECT_EQ(WriteStep(**delivery, "a", "r1", {{"one", "late"}}).code(), absl::StatusCode::kAborted);
  EXPECT_FALSE(Has("a/one"));
}

TEST_F(DeliveryTest, RenewsClaimWhileCheckingManyFiles) {
  FakeVolume volume(disk_);
  ASSERT_TRUE(Deliver(volume).ok());
  const auto delivery = Begin(volume);
  ASSERT_TRUE(delivery.ok());
  int looks = 0;
  const auto done = (*delivery)->FindDone("a", "r1", [&] {
    ++looks;
    clock_.AdvanceNs(Claim::kClaimLeaseNs / 2);
    return (*delivery)->Keep();
  });
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_NE(*done, nullptr);
  EXPECT_EQ(looks, 2);
  const auto ended =
      (*delivery)->FindDone("a", "r1", [] { return absl::CancelledError("nobody listens"); });
  EXPECT_EQ(ended.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(DeliveryTest, TheManifestIsNotWrittenForEachOfManySteps) {
  FakeVolume volume(disk_);
  constexpr int kSteps = 500;
  int manifests = 0;
  disk_.before = [&](const std::string& what, const std::string&) { manifests += what == "make"; };
  {
    const auto delivery = Begin(volume);
    ASSERT_TRUE(delivery.ok());
    std::vector<std::string> names;
    for (int i = 0; i < kSteps; ++i) names.push_back(fmt::format("{}/s{}/x", directory_, i));
    (*delivery)->Expect(names);
    for (int i = 0; i < kSteps; ++i) {
      ASSERT_TRUE(WriteStep(**delivery, fmt::format("s{}", i), "r", {{"x", "y"}}).ok());
    }
    EXPECT_LE(manifests - kSteps, 3);
    manifests = 0;
    ASSERT_TRUE((*delivery)->Finish().ok());
  }
  CheckManifest();
  EXPECT_EQ(manifests, 2) << "and the checksums";
}

TEST_F(DeliveryTest, ManifestNeverListsStepBeingRewritten) {
  FakeVolume volume(disk_);
  ASSERT_TRUE(Deliver(volume).ok());
  const auto delivery = Begin(volume);
  ASSERT_TRUE(delivery.ok());
  for (const char* step : {"b", "a"}) {  // the first one opens the manifest
    ASSERT_TRUE((*delivery)->BeginStep(step, "r2", directory_).ok());
    const auto told = ParseManifest(At("manifest.partial.json"));
    ASSERT_TRUE(told.ok());
    for (const auto& known : told->steps()) EXPECT_FALSE(known.name() == step && known.done());
  }
}

TEST_F(DeliveryTest, RejectsFilesBeyondManifestLimit) {
  FakeVolume volume(disk_);
  const auto delivery = Begin(volume);
  ASSERT_TRUE(delivery.ok());
  const size_t of_a_step = limits::kExportFilesMax;
  size_t files = 0;
  absl::Status status;
  for (int step = 0; status.ok() && step < 4; ++step) {
    const auto out = (*delivery)->BeginStep(fmt::format("s{}", step), "r", directory_ + "/s");
    ASSERT_TRUE(out.ok());
    for (size_t i = 0; status.ok() && i < of_a_step; ++i) {
      const auto file = (*out)->Open(fmt::format("{}.{}", step, i));
      status = file.ok() ? (*file)->Close() : file.status();
      files += status.ok() ? 1 : 0;
    }
    if (status.ok()) {
      ASSERT_TRUE((*delivery)->EndStep({}).ok());
    }
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(files, limits::kDeliveredFilesMax);
}

TEST_F(DeliveryTest, AManifestThatWouldNotBeReadIsNotWritten) {
  FakeVolume volume(disk_);
  const auto delivery = Delivery::Begin(volume,
                                        {.capture = TestCaptureId(),
                                         .owner = {.name = "me"},
                                         .producer = "test",
                                         .manifest_bytes_max = 300},
                                        clock_);
  ASSERT_TRUE(delivery.ok());
  ASSERT_TRUE(WriteStep(**delivery, "a", "r1", {{"one", "first"}}).ok());
  EXPECT_EQ((*delivery)->Finish().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(Has("manifest.json"));
}

TEST_F(DeliveryTest, APlantedManifestRemovesNothingOfOthers) {
  FakeVolume volume(disk_);
  const std::string others = "neurontrace_01JD0000000000000000000001/manifest.json";
  for (const std::string& name : {others, std::string("x/y"), directory_ + "/claim.1.json"}) {
    disk_.files = {{others, "theirs"}, {"x/y", "theirs"}};
    At("manifest.partial.json") = fmt::format(
        "{{\"format_version\":1,\"capture_id\":\"{}\",\"steps\":[{{\"name\":\"z\",\"files\":[{{"
        "\"name\":\"{}\",\"sha256\":\"{}\"}}]}}]}}",
        TestCaptureId().ToString(), name, std::string(64, '0'));
    int removed = 0;
    disk_.before = [&](const std::string& what, const std::string& of) {
      removed += what == "remove" && of == name;
    };
    ASSERT_TRUE(Deliver(volume).ok());
    EXPECT_EQ(removed, name.find("claim.") == std::string::npos ? 0 : 1) << name;
    EXPECT_TRUE(disk_.files.contains(others));
    EXPECT_TRUE(disk_.files.contains("x/y"));
  }
}

}  // namespace
}  // namespace neurontrace
