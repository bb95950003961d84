// SPDX-License-Identifier: Apache-2.0
// Changes reach the record wherever it is, and nothing brings a deleted capture back.
#include "aggregator/operator/capture_updater.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "aggregator/session/fake_session_environment.h"
#include "aggregator/store/store_test_support.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CaptureUpdaterTest : public ::testing::Test, private OrderSender, private SessionStorage {
 protected:
  CaptureUpdaterTest() {
    CaptureRecord ended = TestCapture(2);
    ended.state = CaptureState::kComplete;
    CaptureRecord preview = TestCapture(3);
    preview.state = CaptureState::kComplete;
    preview.spec.mode = CaptureMode::kPreview;
    for (const CaptureRecord& record : {TestCapture(1), ended, preview}) {
      EXPECT_TRUE(store_->captures().Put(record, /*durable=*/true).ok());
      coordinator_.RestoreCapture(record);
    }
    EXPECT_NE(coordinator_.FindRunning(running_), nullptr);
    EXPECT_EQ(coordinator_.Find(ended_), nullptr);
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~CaptureUpdaterTest() override {
    loop_.Quit();
    thread_.join();
  }

  CaptureRecord Stored(const CaptureId& id) { return store_->captures().Get(id).value(); }

  const CaptureId running_ = TestCaptureId(1);
  const CaptureId ended_ = TestCaptureId(2);
  const CaptureId preview_ = TestCaptureId(3);
  const std::unique_ptr<Store> store_ = OpenInMemory();
  ExportLeases leases_;
  FakeClock clock_;
  SeededRandom random_{1};
  UnalignedClocks clocks_{clock_};
  UnlimitedQuota quota_;
  Coordinator coordinator_{{.clock = clock_,
                            .random = random_,
                            .orders = *this,
                            .storage = *this,
                            .clocks = clocks_,
                            .quota = quota_}};
  EventLoop loop_;
  std::thread thread_;
  const SessionSequence sessions_{loop_, coordinator_};
  ChangedRetentions changed_;
  const CaptureUpdater updater_{{.sessions = sessions_,
                                 .store = *store_,
                                 .leases = leases_,
                                 .changed_retentions = changed_,
                                 .clock = clock_}};
  const Caller operator_{.name = "alice", .role = Role::kOperator};
  const Caller admin_{.name = "root", .role = Role::kAdmin};

 private:
  void SendOrder(const std::string&, ConnectionId, const CaptureOrder&) override {
    ADD_FAILURE() << "an update is no order";
  }
  absl::Status PutCapture(const CaptureRecord& record, bool durable) override {
    return store_->captures().Put(record, durable);
  }
  void RememberAgent(const KnownAgent&) override {}
  void RememberWorker(const std::string&, const WorkerInfo&) override {}
};

TEST_F(CaptureUpdaterTest, ChangesRunningAndEndedCaptures) {
  for (const CaptureId& id : {running_, ended_}) {
    ASSERT_TRUE(updater_.Update(id, {.name = "night run", .add_tags = {"b"}}, operator_).ok());
    const auto changed = updater_.Update(id, {.starred = true, .add_tags = {"a"}}, operator_);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_EQ(changed->spec.name, "night run");
    EXPECT_EQ(Stored(id), *changed);
    EXPECT_TRUE(Stored(id).starred);
    EXPECT_THAT(Stored(id).tags, ElementsAre("a", "b"));
  }
  EXPECT_EQ(Stored(running_).state, CaptureState::kRecording);
}

TEST_F(CaptureUpdaterTest, RefusesCapturesThatAreBeingDeleted) {
  for (const CaptureId& id : {running_, ended_}) {
    auto claim = leases_.ClaimForDeletion(id);
    const absl::Status refused = updater_.Update(id, {.starred = true}, operator_).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("is being deleted"));
    EXPECT_FALSE(Stored(id).starred);
    claim.reset();
    EXPECT_TRUE(updater_.Update(id, {.starred = true}, operator_).ok());
    EXPECT_NE(leases_.ClaimForDeletion(id), nullptr);  // an update that is over keeps nothing
  }
}

TEST_F(CaptureUpdaterTest, DoesNotBringBackWhatIsGone) {
  ASSERT_TRUE(store_->DeleteCapture(ended_).ok());
  EXPECT_EQ(updater_.Update(ended_, {.starred = true}, operator_).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->captures().Get(ended_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CaptureUpdaterTest, RefusesPreviews) {
  const absl::Status refused = updater_.Update(preview_, {.starred = true}, operator_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is a preview"));
}

TEST_F(CaptureUpdaterTest, RetentionHandsTheCaptureToTheNextPass) {
  for (const CaptureId& id : {running_, ended_}) {
    ASSERT_TRUE(updater_.Update(id, {.starred = true}, admin_).ok());
    EXPECT_TRUE(changed_.Take().empty());
    clock_.AdvanceNs(1);
    ASSERT_TRUE(updater_.Update(id, {.retention_ns = UINT64_MAX}, admin_).ok());
    EXPECT_THAT(changed_.Take(), ElementsAre(id));
    EXPECT_TRUE(changed_.Take().empty());
    EXPECT_EQ(Stored(id).spec.retention.duration_ns, UINT64_MAX);
  }
}

TEST_F(CaptureUpdaterTest, OperatorsLengthenButDoNotShorten) {
  constexpr uint64_t kHourNs = 3'600'000'000'000;
  for (const CaptureId& id : {running_, ended_}) {
    ASSERT_TRUE(updater_.Update(id, {.retention_ns = UINT64_MAX / 2}, admin_).ok());
    const absl::Status refused =
        updater_.Update(id, {.retention_ns = UINT64_MAX / 2 - kHourNs}, operator_).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("'alice' has the role operator"));
    EXPECT_TRUE(updater_.Update(id, {.retention_ns = UINT64_MAX / 2}, operator_).ok());
    EXPECT_TRUE(updater_.Update(id, {.retention_ns = 0}, operator_).ok());
    EXPECT_EQ(updater_.Update(id, {.retention_ns = UINT64_MAX / 2}, operator_).status().code(),
              absl::StatusCode::kPermissionDenied);
  }
}

TEST_F(CaptureUpdaterTest, RefusesARetentionThatWouldDeleteAtOnce) {
  const uint64_t ended_ago_ns = clock_.RealtimeNs() - LatestMomentNs(Stored(ended_));
  const absl::Status refused =
      updater_.Update(ended_, {.retention_ns = ended_ago_ns}, admin_).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("would be deleted at once"));
  EXPECT_EQ(Stored(ended_).spec.retention.duration_ns, TestCapture(2).spec.retention.duration_ns);
  EXPECT_TRUE(changed_.Take().empty());
  EXPECT_TRUE(updater_.Update(ended_, {.retention_ns = ended_ago_ns + 1}, admin_).ok());
  // It counts from the end of a running one, which is still to come.
  EXPECT_TRUE(updater_.Update(running_, {.retention_ns = 1}, admin_).ok());
}

}  // namespace
}  // namespace neurontrace
