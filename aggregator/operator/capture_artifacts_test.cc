// SPDX-License-Identifier: Apache-2.0
// Goal: operators see every artifact of a capture with what they need to fetch it, a caller with
// limits sees only files of the capture's processes, and a content arrives whole or with an error.
#include "aggregator/operator/capture_artifacts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "aggregator/store/store_test_support.h"
#include "lib/base/sha256.h"
#include "lib/trace/artifact_limits.h"

namespace neurontrace {
namespace {

class CaptureArtifactsTest : public ::testing::Test {
 protected:
  CaptureArtifactsTest() {
    record_.workers.resize(1);
    record_.workers[0].worker = {.instance_id = "i-a", .boot_id = "boot", .pid = 7};
    EXPECT_TRUE(store_->captures().Put(record_, true).ok());
  }

  // Returns the hash, in hexadecimal digits.
  std::string Keep(const std::string& directory, const std::string& name,
                   const std::string& content) {
    Sha256 hash;
    hash.Update(content);
    const ArtifactReference reference{.capture_id = record_.id,
                                      .agent_id = "agent",
                                      .place = MakeArtifactPlace(directory, "", name).value(),
                                      .sha256 = hash.Finish(),
                                      .bytes = content.size(),
                                      .modified_realtime_ns = 17};
    ArtifactFiles& files = store_->artifacts().files();
    if (!files.Has(reference.sha256)) {
      auto upload = files.Receive(reference.sha256, reference.bytes);
      EXPECT_TRUE(upload.ok()) << upload.status();
      EXPECT_TRUE((*upload)->Append(content).ok());
      EXPECT_TRUE((*upload)->Finish().ok());
    }
    EXPECT_EQ(store_->artifacts().Refer(reference).value(), ArtifactStore::Outcome::kKept);
    return HexOf(reference.sha256);
  }
  void Forgo(const std::string& directory, const std::string& name) {
    EXPECT_EQ(store_->artifacts()
                  .Forgo({.capture_id = record_.id,
                          .agent_id = "agent",
                          .place = MakeArtifactPlace(directory, "", name).value(),
                          .bytes = 99,
                          .reason = "too large"})
                  .value(),
              ArtifactStore::Outcome::kKept);
  }

  CaptureRecord record_ = TestCapture(1);
  const std::unique_ptr<Store> store_ = OpenInMemory();
  const CaptureArtifacts artifacts_{store_->artifacts()};
  const Caller everybody_{.name = "ada", .role = Role::kViewer};
  const Caller limited_{.name = "bob", .role = Role::kViewer, .jobs = {"train"}};
};

TEST_F(CaptureArtifactsTest, ListsFilesAndThoseThatAreMissing) {
  const std::string hash = Keep("i-a_pid_7", "profile_nc_1_session_4.ntff", "profile");
  Keep("neffs", "model.neff", "model");
  Forgo("i-a_pid_7", "profile_nc_2_session_4.ntff");
  const auto list = artifacts_.List(everybody_, record_);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->artifacts_size(), 2);
  const v1::Artifact& profile = list->artifacts(0);
  EXPECT_EQ(profile.path(), "i-a_pid_7/profile_nc_1_session_4.ntff");
  EXPECT_EQ(profile.kind(), "ntff");
  EXPECT_EQ(profile.sha256(), hash);
  EXPECT_EQ(profile.bytes(), 7u);
  EXPECT_EQ(profile.pid(), 7u);
  EXPECT_EQ(list->artifacts(1).kind(), "neff");
  ASSERT_EQ(list->missing_size(), 1);
  EXPECT_EQ(list->missing(0).reason(), "too large");
  EXPECT_EQ(list->hidden(), 0u);
  EXPECT_EQ(list->not_listed(), 0u);
}

TEST_F(CaptureArtifactsTest, HidesFilesOfOtherProcessesFromCallersWithLimits) {
  const std::string own = Keep("i-a_pid_7", "profile_nc_1_session_4.ntff", "own");
  const std::string foreign = Keep("i-a_pid_8", "profile_nc_1_session_4.ntff", "foreign");
  Keep("i-b_pid_7", "profile_nc_1_session_4.ntff", "elsewhere");
  const std::string shared = Keep("neffs", "model.neff", "model");
  Forgo("i-a_pid_8", "profile_nc_2_session_4.ntff");
  const auto list = artifacts_.List(limited_, record_);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->artifacts_size(), 1);
  EXPECT_EQ(list->artifacts(0).sha256(), own);
  EXPECT_EQ(list->missing_size(), 0);
  EXPECT_EQ(list->hidden(), 4u);
  EXPECT_TRUE(artifacts_.Find(limited_, record_, own).ok());
  for (const std::string& hash : {foreign, shared}) {
    EXPECT_TRUE(absl::IsNotFound(artifacts_.Find(limited_, record_, hash).status()));
    EXPECT_TRUE(artifacts_.Find(everybody_, record_, hash).ok());
  }
}

TEST_F(CaptureArtifactsTest, CountsWhatTheListHasNoRoomFor) {
  for (size_t i = 0; i <= limits::kArtifactsListedMax; ++i) {
    Forgo("i-a_pid_7", "profile_nc_1_session_" + std::to_string(i) + ".ntff");
  }
  const auto list = artifacts_.List(everybody_, record_);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(static_cast<size_t>(list->missing_size()), limits::kArtifactsListedMax);
  EXPECT_EQ(list->not_listed(), 1u);
}

TEST_F(CaptureArtifactsTest, SendsTheContentInPieces) {
  const std::string content = std::string(3u << 20, 'x') + "end";
  const auto artifact =
      artifacts_.Find(everybody_, record_, Keep("i-a_pid_7", "a_instid_0_vnc_0.ntff", content));
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  std::string received;
  int replies = 0;
  const absl::Status read = artifacts_.Read(*artifact, [&](const v1::GetArtifactReply& reply) {
    if (++replies == 1) EXPECT_EQ(reply.artifact().bytes(), content.size());
    received += reply.data();
    return true;
  });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(received, content);
  EXPECT_EQ(replies, 5) << "the artifact, and pieces of 1 MiB";
}

TEST_F(CaptureArtifactsTest, EndsWithAnErrorWithoutReaderOrContent) {
  const auto artifact =
      artifacts_.Find(everybody_, record_, Keep("i-a_pid_7", "a_instid_0_vnc_0.ntff", "content"));
  ASSERT_TRUE(artifact.ok()) << artifact.status();
  const auto leaves = [](const v1::GetArtifactReply&) { return false; };
  EXPECT_TRUE(absl::IsCancelled(artifacts_.Read(*artifact, leaves)));
  ASSERT_TRUE(store_->artifacts().files().Remove(artifact->sha256).ok());
  const auto reads = [](const v1::GetArtifactReply&) { return true; };
  EXPECT_TRUE(absl::IsNotFound(artifacts_.Read(*artifact, reads)));
}

}  // namespace
}  // namespace neurontrace
