// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/database.h"

#include <gtest/gtest.h>
#include <rocksdb/env.h>
#include <sys/resource.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "aggregator/store/full_disk.h"
#include "aggregator/store/store_test_support.h"
#include "lib/trace/access_limits.h"

namespace neurontrace {
namespace {

// Lets the flushes wait that RocksDB schedules.
class LateFlushes final : public rocksdb::EnvWrapper {
 public:
  explicit LateFlushes(rocksdb::Env* env) : EnvWrapper(env) {}
  ~LateFlushes() override { Release(); }

  void Hold() {
    const std::lock_guard lock(mutex_);
    held_ = true;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  // Until the flush that was held has run.
  void AwaitFlush() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return ran_; });
  }

  void Schedule(void (*function)(void*), void* argument, Priority priority, void* tag,
                void (*unschedule)(void*)) override {
    const std::lock_guard lock(mutex_);
    if (priority != HIGH || !held_) {
      return EnvWrapper::Schedule(function, argument, priority, tag, unschedule);
    }
    auto* const job = new Job{this, function, argument};
    EnvWrapper::Schedule(&LateFlushes::Run, job, priority, nullptr, nullptr);
  }

 private:
  struct Job {
    LateFlushes* env;
    void (*function)(void*);
    void* argument;
  };
  static void Run(void* argument) {
    const std::unique_ptr<Job> job(static_cast<Job*>(argument));
    LateFlushes& env = *job->env;
    {
      std::unique_lock lock(env.mutex_);
      env.changed_.wait(lock, [&] { return !env.held_; });
    }
    job->function(job->argument);
    const std::lock_guard lock(env.mutex_);
    env.ran_ = true;
    env.changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool ran_ = false;
};

TEST(DatabaseTest, AResumeThatRocksDbNeverEndsIsGivenUp) {
  TemporaryDirectory directory;
  const auto disk = std::make_shared<FullDisk>();
  const std::unique_ptr<rocksdb::Env> on_disk = rocksdb::NewCompositeEnv(disk);
  LateFlushes env(on_disk.get());
  {
    const auto opened = Database::Open(directory.path(), &env);
    ASSERT_TRUE(opened.ok()) << opened.status();
    Database& database = **opened;
    database.SetResumePatience(std::chrono::milliseconds(200));
    ASSERT_TRUE(database.Put(Family::kMeta, "a", "1", true).ok());
    // A flush waits for its turn, and has it when a write of the log has failed.
    env.Hold();
    rocksdb::FlushOptions no_wait;
    no_wait.wait = false;
    ASSERT_TRUE(database.db().Flush(no_wait, database.family(Family::kMeta)).ok());
    disk->SetRoom(0);
    EXPECT_TRUE(absl::IsResourceExhausted(database.Put(Family::kMeta, "b", "2", true)));
    env.Release();
    env.AwaitFlush();
    disk->SetUnlimited();
    const absl::Status status = database.Put(Family::kMeta, "c", "3", true);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_FALSE(database.Put(Family::kMeta, "d", "4", true).ok());
  }
  const auto again = Database::Open(directory.path(), &env);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->Get(Family::kMeta, "a").value(), "1");
  EXPECT_TRUE((*again)->Put(Family::kMeta, "e", "5", true).ok());
}

TEST(DatabaseTest, FailedCompactionDoesNotStopWrites) {
  TemporaryDirectory directory;
  const auto disk = std::make_shared<FullDisk>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(disk);
  // What comes out of the log into a file, RocksDB counts twice.
  ASSERT_TRUE(
      Database::Open(directory.path(), env.get()).value()->Put(Family::kMeta, "z", "0", true).ok());
  const auto opened = Database::Open(directory.path(), env.get());
  ASSERT_TRUE(opened.ok()) << opened.status();
  Database& database = **opened;
  rocksdb::ColumnFamilyHandle* meta = database.family(Family::kMeta);
  const auto compact = [&] { return database.db().CompactRange({}, meta, nullptr, nullptr); };
  const auto put_to_file = [&](std::string_view value) {
    ASSERT_TRUE(database.Put(Family::kMeta, "a", value, true).ok());
    ASSERT_TRUE(database.db().Flush({}, meta).ok());
  };
  put_to_file("1");
  ASSERT_TRUE(compact().ok());
  put_to_file("2");  // over what is compacted: a file is written, and none just moved
  disk->SetRoom(0);
  EXPECT_TRUE(compact().IsNoSpace());
  EXPECT_TRUE(absl::IsResourceExhausted(database.Put(Family::kMeta, "b", "3", true)));
  disk->SetUnlimited();
  const absl::Status status = database.Put(Family::kMeta, "b", "4", true);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(compact().ok());
  disk->SetRoom(10'000);
  EXPECT_TRUE(database.Put(Family::kMeta, "c", "5", true).ok());
}

TEST(DatabaseOptionsTest, LeavesHalfOfTheDescriptorsForFilesToOthers) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 600;  // more than this process has open
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  const int files_open = DatabaseOptions(nullptr).max_open_files;
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(files_open, 150);
  EXPECT_EQ(limits::StoreFilesOpenMax(1u << 20), 512u);
}

// A family that came with a later version.
TEST(DatabaseTest, StoreOfAnOlderVersionLacksAFamily) {
  const std::unique_ptr<rocksdb::Env> env(rocksdb::NewMemEnv(rocksdb::Env::Default()));
  {
    const auto database = Database::Open("/store", env.get());
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Put(Family::kAgents, "agent", "value", true).ok());
    ASSERT_TRUE((*database)->db().DropColumnFamily((*database)->family(Family::kDigests)).ok());
  }
  {
    const auto database = Database::OpenToRead("/store", env.get());
    ASSERT_TRUE(database.ok()) << database.status();
    EXPECT_EQ((*database)->Get(Family::kAgents, "agent").value(), "value");
  }
  const auto database = Database::Open("/store", env.get());
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_TRUE((*database)->Put(Family::kDigests, "key", "value", false).ok());
  EXPECT_EQ((*database)->Get(Family::kDigests, "key").value(), "value");
}

}  // namespace
}  // namespace neurontrace
