// SPDX-License-Identifier: Apache-2.0
// Versions of models come back whole or not at all, the newest two are kept, and they go with their
// capture: also through restarts, deletions cut short, damage and rebuilds.
#include "aggregator/store/clock_model_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/store_check.h"
#include "aggregator/store/store_test_support.h"
#include "lib/base/status.h"
#include "lib/trace/clock_limits.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const CaptureId kCapture = TestCaptureId(1);

ClockModelVersion Version(uint32_t number, std::vector<std::string> rows = {"one", "two"}) {
  return {number, "header " + std::to_string(number), std::move(rows)};
}

class ClockModelStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    Open();
    ASSERT_TRUE(store_->captures().Put(TestCapture(1), true).ok());
    ASSERT_TRUE(store_->captures().Put(TestCapture(2), true).ok());
  }
  void Open() {
    store_.reset();
    const auto examine = [](std::string_view, std::string_view, uint32_t) {
      return absl::StatusOr<ReceivedChunk>(DataLoss("there are no chunks here"));
    };
    auto store = Store::Open(directory_.path(), {.examine = examine});
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  ClockModelStore& models() { return store_->clock_models(); }
  std::vector<uint32_t> Versions(const CaptureId& id = kCapture) {
    const auto versions = models().Versions(id);
    EXPECT_TRUE(versions.ok()) << versions.status();
    return versions.value_or(std::vector<uint32_t>{});
  }
  // Works on the bare database while the store is closed.
  template <typename Edit>
  void EditStore(Edit edit) {
    store_.reset();
    {
      const auto database = Database::Open(directory_.path(), nullptr);
      ASSERT_TRUE(database.ok()) << database.status();
      edit(**database);
    }
    Open();
  }
  std::vector<std::string> Faults() {
    store_.reset();
    const auto report = CheckStore(directory_.path(), nullptr, {});
    EXPECT_TRUE(report.ok()) << report.status();
    std::vector<std::string> faults;
    for (const StoreFault& fault : report->faults) faults.push_back(fault.ToString());
    Open();
    return faults;
  }

  const TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(ClockModelStoreTest, ReturnsNewestAfterRestart) {
  EXPECT_EQ(*models().Newest(kCapture), std::nullopt);
  ASSERT_TRUE(models().Put(kCapture, Version(1)).ok());
  ASSERT_TRUE(models().Put(TestCaptureId(2), Version(7, {})).ok());
  ASSERT_TRUE(models().Put(kCapture, Version(2, {"a", "", std::string(300'000, 'x')})).ok());
  Open();
  EXPECT_EQ(**models().Newest(kCapture), Version(2, {"a", "", std::string(300'000, 'x')}));
  EXPECT_EQ(**models().NewestHeader(kCapture), "header 2");
  EXPECT_EQ(**models().Newest(TestCaptureId(2)), Version(7, {}));
  EXPECT_EQ(*models().Newest(TestCaptureId(3)), std::nullopt);
  EXPECT_EQ(*models().Read(kCapture, 1), Version(1));
  EXPECT_TRUE(absl::IsNotFound(models().Read(kCapture, 3).status()));
  EXPECT_THAT(Faults(), IsEmpty());
}

TEST_F(ClockModelStoreTest, KeepsTwoVersions) {
  for (uint32_t number = 1; number <= 5; ++number) {
    ASSERT_TRUE(models().Put(kCapture, Version(number)).ok());
  }
  EXPECT_THAT(Versions(), ElementsAre(4u, 5u));
}

TEST_F(ClockModelStoreTest, AVersionWrittenAgainReplacesItself) {
  ASSERT_TRUE(models().Put(kCapture, Version(3, {"a", "b", "c"})).ok());
  ASSERT_TRUE(models().Put(kCapture, Version(3, {"d"})).ok());
  EXPECT_EQ(**models().Newest(kCapture), Version(3, {"d"}));
}

TEST_F(ClockModelStoreTest, RejectsModelsBeyondLimits) {
  EXPECT_TRUE(absl::IsInvalidArgument(models().Put(kCapture, Version(0))));
  const ClockModelVersion large = Version(1, {std::string(limits::kClockModelBytesMax, 'x'), "y"});
  EXPECT_TRUE(absl::IsInvalidArgument(models().Put(kCapture, large)));
  EXPECT_THAT(Versions(), IsEmpty());
}

TEST_F(ClockModelStoreTest, GoesWithItsCapture) {
  ASSERT_TRUE(models().Put(kCapture, Version(1)).ok());
  ASSERT_TRUE(models().Put(TestCaptureId(2), Version(1)).ok());
  ASSERT_TRUE(store_->DeleteCapture(kCapture).ok());
  EXPECT_THAT(Versions(), IsEmpty());
  EXPECT_THAT(Versions(TestCaptureId(2)), ElementsAre(1u));
}

TEST_F(ClockModelStoreTest, ADeletionThatWasCutShortIsEndedAtTheNextStart) {
  ASSERT_TRUE(models().Put(kCapture, Version(1)).ok());
  ASSERT_TRUE(models().Put(TestCaptureId(2), Version(1)).ok());
  ASSERT_TRUE(store_->captures().Delete(kCapture).ok());
  EXPECT_THAT(Faults(), IsEmpty());  // and starts again
  EXPECT_THAT(Versions(), IsEmpty());
  EXPECT_THAT(Versions(TestCaptureId(2)), ElementsAre(1u));
}

TEST_F(ClockModelStoreTest, IgnoresIncompleteVersion) {
  ASSERT_TRUE(models().Put(kCapture, Version(1)).ok());
  ASSERT_TRUE(models().Put(kCapture, Version(2)).ok());
  EditStore([](Database& database) {
    ASSERT_TRUE(
        database.Put(Family::kClockModels, keys::ClockModel(kCapture, 2, 1), "TWO", true).ok());
  });
  EXPECT_TRUE(absl::IsDataLoss(models().Read(kCapture, 2).status()));
  EXPECT_EQ(**models().Newest(kCapture), Version(1));
  EXPECT_THAT(Faults(), ElementsAre(HasSubstr("version 2 of its clock models is incomplete")));
  // The number is not given again.
  EXPECT_THAT(Versions(), ElementsAre(1u, 2u));
}

TEST_F(ClockModelStoreTest, RebuildKeepsCompleteVersions) {
  for (uint32_t number = 1; number <= 4; ++number) {
    ASSERT_TRUE(models().Put(kCapture, Version(number)).ok());
  }
  ASSERT_TRUE(models().Put(TestCaptureId(2), Version(1, {"a", "b", "c"})).ok());
  // A row that belongs to no version.
  EditStore([](Database& database) {
    ASSERT_TRUE(
        database.Put(Family::kClockModels, keys::ClockModel(kCapture, 9, 0), "lost", true).ok());
    ASSERT_TRUE(database.Flush().ok());
  });
  store_.reset();
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    if (entry.path().filename().string().starts_with("MANIFEST")) {
      std::filesystem::remove(entry.path());
    }
  }
  Open();
  EXPECT_THAT(store_->notes(), testing::Contains(HasSubstr("rebuilt")));
  EXPECT_EQ(**models().Newest(kCapture), Version(4));
  EXPECT_EQ(**models().Newest(TestCaptureId(2)), Version(1, {"a", "b", "c"}));
  EXPECT_THAT(Faults(), IsEmpty());
}

}  // namespace
}  // namespace neurontrace
