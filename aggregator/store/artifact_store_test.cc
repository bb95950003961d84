// SPDX-License-Identifier: Apache-2.0
// Contents and references over a real store in a directory: each content once, whole or not at all,
// gone with its last reference; what interruptions leave; limits.
#include "aggregator/store/artifact_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "aggregator/store/artifact_codec.h"
#include "aggregator/store/store_test_support.h"
#include "lib/trace/artifact_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Outcome = ArtifactStore::Outcome;

std::string HashOfText(std::string_view text) {
  Sha256 sha;
  sha.Update(text);
  return sha.Finish();
}

class ArtifactStoreTest : public ::testing::Test {
 protected:
  ArtifactStoreTest() { Open(); }
  void Open() {
    store_.reset();
    store_ = Store::Open(directory_.path(), {}).value();
    for (const uint8_t n : {1, 2}) {
      EXPECT_TRUE(store_->captures().Put(TestCapture(n), true).ok());
    }
  }
  ArtifactStore& artifacts() { return store_->artifacts(); }
  ArtifactFiles& files() { return store_->artifacts().files(); }

  static ArtifactReference Reference(uint8_t capture, const std::string& directory,
                                     const std::string& name, std::string_view content) {
    ArtifactReference reference;
    reference.capture_id = TestCaptureId(capture);
    reference.agent_id = "agent-a";
    reference.place = MakeArtifactPlace(directory, "1776672348756756905", name).value();
    reference.sha256 = HashOfText(content);
    reference.bytes = content.size();
    reference.modified_realtime_ns = 7;
    return reference;
  }
  // Receives the content, if it is missing, and keeps the reference.
  Outcome Keep(const ArtifactReference& reference, std::string_view content) {
    if (!files().Has(reference.sha256)) {
      auto upload = files().Receive(reference.sha256, content.size()).value();
      EXPECT_TRUE(upload->Append(content).ok());
      EXPECT_TRUE(upload->Finish().ok());
    }
    return artifacts().Refer(reference).value();
  }
  std::string PathOf(std::string_view content) const {
    const std::string hex = HexOf(HashOfText(content));
    return directory_.path() + "/artifacts/" + hex.substr(0, 2) + "/" + hex;
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(ArtifactStoreTest, TwoWorkersWithTheSameContentShareIt) {
  const auto first = Reference(1, "i-1_pid_7", "neff_a.neff", "content");
  const auto second = Reference(1, "i-2_pid_8", "neff_a.neff", "content");
  EXPECT_EQ(artifacts().Refer(first).value(), Outcome::kMissing);
  EXPECT_EQ(Keep(first, "content"), Outcome::kKept);
  EXPECT_EQ(Keep(second, "content"), Outcome::kKept);
  EXPECT_EQ(Keep(second, "content"), Outcome::kKept) << "a repeated call succeeds";
  EXPECT_EQ(artifacts().List(TestCaptureId(1)).value(),
            (std::vector<ArtifactReference>{first, second}));
  const auto sum = artifacts().Sum(TestCaptureId(1)).value();
  EXPECT_EQ(sum.references, 2u);
  EXPECT_EQ(sum.contents, 1u);
  EXPECT_EQ(sum.bytes, 7u);
  EXPECT_EQ(files().bytes(), 7u);
  EXPECT_EQ(files().Read(first.sha256, 3, 100).value(), "tent");
}

TEST_F(ArtifactStoreTest, ContentGoesWithItsLastReference) {
  Keep(Reference(1, "i-1_pid_7", "ntrace.pb", "shared"), "shared");
  Keep(Reference(2, "i-1_pid_7", "ntrace.pb", "shared"), "shared");
  Keep(Reference(1, "i-1_pid_7", "cpu_util.pb", "own"), "own");
  ASSERT_TRUE(store_->DeleteCapture(TestCaptureId(1)).ok());
  EXPECT_THAT(artifacts().List(TestCaptureId(1)).value(), IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(PathOf("shared")));
  EXPECT_FALSE(std::filesystem::exists(PathOf("own")));
  ASSERT_TRUE(store_->DeleteCapture(TestCaptureId(2)).ok());
  EXPECT_FALSE(std::filesystem::exists(PathOf("shared")));
  EXPECT_EQ(files().bytes(), 0u);
}

TEST_F(ArtifactStoreTest, FileThatIsAnotherOneByNowTakesThePlaceOfTheOneBefore) {
  Keep(Reference(1, "i-1_pid_7", "ntrace.pb", "before"), "before");
  const auto after = Reference(1, "i-1_pid_7", "ntrace.pb", "after it");
  EXPECT_EQ(Keep(after, "after it"), Outcome::kKept);
  EXPECT_THAT(artifacts().List(TestCaptureId(1)).value(), ::testing::ElementsAre(after));
  EXPECT_FALSE(std::filesystem::exists(PathOf("before")));
}

TEST_F(ArtifactStoreTest, SamePlacesInTwoInspectDirectoriesOfOneAgentAreBothKept) {
  auto first = Reference(1, "i-1_pid_1", "ntrace.pb", "of one pod");
  first.root = ArtifactRootOf("/pods/a");
  auto second = Reference(1, "i-1_pid_1", "ntrace.pb", "of another");
  second.root = ArtifactRootOf("/pods/b");
  EXPECT_EQ(Keep(first, "of one pod"), Outcome::kKept);
  EXPECT_EQ(Keep(second, "of another"), Outcome::kKept);
  Open();
  EXPECT_THAT(artifacts().List(TestCaptureId(1)).value(),
              ::testing::UnorderedElementsAre(first, second));
  EXPECT_EQ(files().Read(first.sha256, 0, 100).value(), "of one pod");
  ArtifactForgone forgone{.capture_id = first.capture_id,
                          .agent_id = first.agent_id,
                          .root = ArtifactRootOf("/pods/c"),
                          .place = first.place,
                          .bytes = 4,
                          .reason = "the disk is full"};
  EXPECT_EQ(artifacts().Forgo(forgone).value(), Outcome::kKept);
  EXPECT_EQ(Keep(first, "of one pod"), Outcome::kKept);
  EXPECT_THAT(artifacts().Forgone(TestCaptureId(1)).value(), ::testing::ElementsAre(forgone));
}

TEST_F(ArtifactStoreTest, ResumesBrokenUploadAcrossRestart) {
  const std::string content(3'000'000, 'x');
  const std::string sha256 = HashOfText(content);
  {
    auto upload = files().Receive(sha256, content.size()).value();
    EXPECT_EQ(files().Receive(sha256, content.size()).status().code(),
              absl::StatusCode::kUnavailable);
    ASSERT_TRUE(upload->Append(content.substr(0, 1'000'000)).ok());
    EXPECT_EQ(upload->Finish().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(files().Received(sha256), 1'000'000u);
  EXPECT_FALSE(files().Has(sha256));
  Open();
  auto upload = files().Receive(sha256, content.size()).value();
  EXPECT_EQ(upload->offset(), 1'000'000u);
  ASSERT_TRUE(upload->Append(content.substr(1'000'000)).ok());
  EXPECT_EQ(upload->Append("x").code(), absl::StatusCode::kOutOfRange);
  ASSERT_TRUE(upload->Finish().ok());
  EXPECT_TRUE(files().Has(sha256));
  EXPECT_EQ(files().Received(sha256), 0u);
  EXPECT_EQ(files().bytes(), content.size());
}

TEST_F(ArtifactStoreTest, BytesOfAnotherHashAreNotKept) {
  const std::string sha256 = HashOfText("right");
  auto upload = files().Receive(sha256, 5).value();
  ASSERT_TRUE(upload->Append("wrong").ok());
  EXPECT_EQ(upload->Finish().code(), absl::StatusCode::kDataLoss);
  upload.reset();
  EXPECT_FALSE(files().Has(sha256));
  EXPECT_EQ(files().Received(sha256), 0u);
  EXPECT_EQ(files().bytes(), 0u);
}

TEST_F(ArtifactStoreTest, UploadThatIsOverLeavesTheNextOneOfItsHashAlone) {
  const std::string sha256 = HashOfText("right");
  auto wrong = files().Receive(sha256, 5).value();
  ASSERT_TRUE(wrong->Append("wrong").ok());
  EXPECT_EQ(wrong->Finish().code(), absl::StatusCode::kDataLoss);
  auto right = files().Receive(sha256, 5).value();
  wrong.reset();
  EXPECT_EQ(files().Receive(sha256, 5).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(right->Append("right").ok());
  ASSERT_TRUE(right->Finish().ok());
  auto again = files().Receive(sha256, 5).value();
  right.reset();
  EXPECT_EQ(files().Receive(sha256, 5).status().code(), absl::StatusCode::kUnavailable);
  ASSERT_TRUE(again->Append("right").ok());
  ASSERT_TRUE(again->Finish().ok());
  again.reset();
  EXPECT_EQ(files().bytes(), 5u);
}

TEST_F(ArtifactStoreTest, RejectsOversizedArtifact) {
  files().SetBytesMax(10);
  Keep(Reference(1, "i-1_pid_7", "ntrace.pb", "seven b"), "seven b");
  const auto refused = files().Receive(HashOfText("more"), 4);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("7 of 10 bytes"));
  EXPECT_TRUE(files().Receive(HashOfText("few"), 3).ok());
}

TEST_F(ArtifactStoreTest, MissingContentUsesNoQuota) {
  files().SetBytesMax(100);
  files().Receive(HashOfText("nothing"), 100).value().reset();
  EXPECT_EQ(files().bytes(), 0u);
  auto upload = files().Receive(HashOfText("something"), 100).value();
  ASSERT_TRUE(upload->Append("some").ok());
  EXPECT_EQ(files().bytes(), 100u);
  upload.reset();
  EXPECT_EQ(files().bytes(), 4u);
  EXPECT_EQ(files().Receive(HashOfText("other"), 97).status().code(),
            absl::StatusCode::kResourceExhausted);
  upload = files().Receive(HashOfText("something"), 100).value();
  EXPECT_EQ(upload->offset(), 4u) << "the upload resumes";
  EXPECT_EQ(files().bytes(), 100u);
}

TEST_F(ArtifactStoreTest, RemovesOldestBrokenUploads) {
  for (size_t i = 0; i <= limits::kArtifactPartialsMax; ++i) {
    auto upload = files().Receive(HashOfText(std::to_string(i)), 2).value();
    ASSERT_TRUE(upload->Append("x").ok());
  }
  EXPECT_EQ(files().bytes(), limits::kArtifactPartialsMax);
  EXPECT_EQ(files().Received(HashOfText("0")), 0u);
  EXPECT_EQ(files().Received(HashOfText("1")), 1u);
}

TEST_F(ArtifactStoreTest, OnlySoManyAreReceivedAtOnce) {
  std::vector<std::unique_ptr<ArtifactFiles::Upload>> uploads;
  for (size_t i = 0; i < limits::kArtifactUploadsMax; ++i) {
    uploads.push_back(files().Receive(HashOfText(std::to_string(i)), 1).value());
  }
  EXPECT_EQ(files().Receive(HashOfText("x"), 1).status().code(), absl::StatusCode::kUnavailable);
  uploads.pop_back();
  EXPECT_TRUE(files().Receive(HashOfText("x"), 1).ok());
}

TEST_F(ArtifactStoreTest, ReferenceOfACaptureThatIsNotThereIsNotKept) {
  EXPECT_EQ(Keep(Reference(9, "i-1_pid_7", "ntrace.pb", "a"), "a"), Outcome::kUnknownCapture);
}

TEST_F(ArtifactStoreTest, OpeningRemovesWhatInterruptionsLeave) {
  Keep(Reference(1, "i-1_pid_7", "ntrace.pb", "kept"), "kept");
  Keep(Reference(1, "i-1_pid_7", "host_mem.pb", "vanishes"), "vanishes");
  Keep(Reference(9, "i-1_pid_7", "cpu_util.pb", "of no capture"), "of no capture");
  std::filesystem::remove(PathOf("vanishes"));
  Keep(Reference(2, "i-1_pid_7", "cpu_util.pb", "of a deleted one"), "of a deleted one");
  ASSERT_TRUE(store_->captures().Delete(TestCaptureId(2)).ok());
  store_.reset();
  store_ = Store::Open(directory_.path(), {}).value();
  EXPECT_FALSE(std::filesystem::exists(PathOf("of no capture")));
  EXPECT_FALSE(std::filesystem::exists(PathOf("of a deleted one")));
  const auto left = artifacts().List(TestCaptureId(1)).value();
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left[0].sha256, HashOfText("kept"));
  const auto lost = artifacts().Forgone(TestCaptureId(1)).value();
  ASSERT_THAT(lost, SizeIs(1));
  EXPECT_EQ(lost[0].place.name, "host_mem.pb");
  EXPECT_EQ(lost[0].reason, "its content is missing from the store");
  EXPECT_THAT(artifacts().List(TestCaptureId(2)).value(), IsEmpty());
}

TEST_F(ArtifactStoreTest, ListsForgoneFilesUntilStored) {
  const auto reference = Reference(1, "i-1_pid_7", "ntrace.pb", "text");
  ArtifactForgone forgone{.capture_id = reference.capture_id,
                          .agent_id = reference.agent_id,
                          .place = reference.place,
                          .bytes = 4,
                          .reason = "the disk is full"};
  EXPECT_EQ(artifacts().Forgo(forgone).value(), Outcome::kKept);
  EXPECT_EQ(artifacts().Forgo(forgone).value(), Outcome::kKept) << "a repeated call succeeds";
  forgone.reason = "it changed all the time";
  EXPECT_EQ(artifacts().Forgo(forgone).value(), Outcome::kKept);
  Open();
  EXPECT_THAT(artifacts().Forgone(TestCaptureId(1)).value(), ::testing::ElementsAre(forgone));
  EXPECT_EQ(artifacts().Sum(TestCaptureId(1)).value().forgone, 1u);
  EXPECT_EQ(Keep(reference, "text"), Outcome::kKept);
  EXPECT_EQ(artifacts().Sum(TestCaptureId(1)).value().forgone, 0u);
  EXPECT_EQ(artifacts().Sum(TestCaptureId(1)).value().references, 1u);
}

TEST_F(ArtifactStoreTest, ForgoneEntriesAreDeletedWithCapture) {
  const auto reference = Reference(2, "i-1_pid_7", "ntrace.pb", "text");
  ArtifactForgone forgone{.capture_id = TestCaptureId(2),
                          .agent_id = "agent-a",
                          .place = reference.place,
                          .bytes = 4,
                          .reason = "refused"};
  ASSERT_EQ(artifacts().Forgo(forgone).value(), Outcome::kKept);
  ASSERT_TRUE(store_->DeleteCapture(TestCaptureId(2)).ok());
  EXPECT_THAT(artifacts().Forgone(TestCaptureId(2)).value(), IsEmpty());
  EXPECT_EQ(artifacts().Forgo(forgone).value(), Outcome::kUnknownCapture);
}

TEST_F(ArtifactStoreTest, ValidatesEntriesByContent) {
  EXPECT_FALSE(IsArtifactEntry("n" + std::string(48, 'x'), "nonsense"));
  EXPECT_FALSE(IsArtifactEntry("", ""));
  EXPECT_FALSE(IsArtifactEntry("o123", ""));
  EXPECT_FALSE(IsArtifactEntry("r" + std::string(48, 'x'), "nonsense"));
}

}  // namespace
}  // namespace neurontrace
