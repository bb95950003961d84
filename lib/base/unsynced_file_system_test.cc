// SPDX-License-Identifier: Apache-2.0
// What survives with syncs that do nothing: the end of the program, and only that.
#include "lib/base/unsynced_file_system.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "lib/base/fake_file_system.h"
#include "lib/base/file_system.h"

namespace neurontrace {
namespace {

using Operation = FakeFileSystem::Operation;

void WriteAndSync(FileSystem& files) {
  ASSERT_TRUE(files.MakeDirectory("/spool").ok());
  auto file = files.Create("/spool/a");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE((*file)->Append("kept").ok());
  ASSERT_TRUE((*file)->Sync().ok());
  ASSERT_TRUE(files.SyncDirectory("/spool").ok());
  EXPECT_EQ((*file)->Read(1, 2).value(), "ep");
  EXPECT_EQ((*file)->Size().value(), 4u);
}

TEST(UnsyncedFileSystem, NeverSyncs) {
  FakeFileSystem disk;
  UnsyncedFileSystem files(disk);
  WriteAndSync(files);
  EXPECT_EQ(disk.operations(Operation::kSync), 0u);
  EXPECT_EQ(disk.operations(Operation::kSyncDirectory), 0u);
}

TEST(UnsyncedFileSystem, KeepsEverythingWhenOnlyTheProgramEnds) {
  FakeFileSystem disk;
  disk.SetCrashLosesNothing(true);
  UnsyncedFileSystem files(disk);
  WriteAndSync(files);
  disk.Crash();
  EXPECT_EQ(disk.Contents("/spool/a"), "kept");
}

TEST(UnsyncedFileSystem, PassesEverythingElseOn) {
  FakeFileSystem disk;
  UnsyncedFileSystem files(disk);
  WriteAndSync(files);
  EXPECT_EQ(files.OpenForReading("/spool/a").value()->Read(0, 9).value(), "kept");
  ASSERT_TRUE(files.Rename("/spool/a", "/spool/b").ok());
  const auto entries = files.List("/spool", 5);
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ(entries->front(), (FileSystem::Entry{"b", false, 4}));
  const auto lock = files.TakeLock("/spool/lock");
  EXPECT_TRUE(lock.ok()) << lock.status();
  EXPECT_TRUE(absl::IsFailedPrecondition(files.TakeLock("/spool/lock").status()));
  EXPECT_TRUE(files.Remove("/spool/b").ok());
  EXPECT_FALSE(disk.Contents("/spool/b").has_value());
  disk.Fail(Operation::kCreate, absl::ResourceExhaustedError("full"));
  EXPECT_TRUE(absl::IsResourceExhausted(files.Create("/spool/c").status()));
}

}  // namespace
}  // namespace neurontrace
