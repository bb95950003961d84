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
  const CaptureUpdater updater_{{.sessions = sessions_, .store = *store_, .leases = leases_}};

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
    ASSERT_TRUE(updater_.Update(id, {.name = "night run", .add_tags = {"b"}}).ok());
    const auto changed = updater_.Update(id, {.starred = true, .add_tags = {"a"}});
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
    const absl::Status refused = updater_.Update(id, {.starred = true}).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("is being deleted"));
    EXPECT_FALSE(Stored(id).starred);
    claim.reset();
    EXPECT_TRUE(updater_.Update(id, {.starred = true}).ok());
    EXPECT_NE(leases_.ClaimForDeletion(id), nullptr);  // an update that is over keeps nothing
  }
}

TEST_F(CaptureUpdaterTest, DoesNotBringBackWhatIsGone) {
  ASSERT_TRUE(store_->DeleteCapture(ended_).ok());
  EXPECT_EQ(updater_.Update(ended_, {.starred = true}).status().code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(store_->captures().Get(ended_).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CaptureUpdaterTest, RefusesPreviews) {
  const absl::Status refused = updater_.Update(preview_, {.starred = true}).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("is a preview"));
}

}  // namespace
}  // namespace neurontrace
