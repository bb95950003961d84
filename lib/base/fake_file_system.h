// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/file_system.h"
#include "lib/base/random.h"

namespace neurontrace {

// A disk in memory that is as unkind as real ones are, for tests. At a crash it forgets unsynced
// data: any number of a file's unsynced bytes survives, possibly damaged; of a directory's unsynced
// changes the first few survive, in order, as journals keep them. All choices come from the seed,
// so that a run is repeatable. One thread. Files and locks refer to it and must not outlive it.
class FakeFileSystem final : public FileSystem {
 public:
  // The kinds of operations in which faults are set and counted.
  enum class Operation {
    kCreate,
    kOpen,
    kAppend,
    kSync,
    kRead,
    kList,
    kMakeDirectory,
    kRename,
    kRemove,
    kSyncDirectory,
    kLock,
    kCount
  };

  explicit FakeFileSystem(uint64_t seed = 1) : random_(seed) {}
  ~FakeFileSystem() override;

  // --- Faults ---

  // The next `times` operations of the kind fail with `error`. A failed Append leaves any part of
  // its bytes behind. A failed Sync is the last word on what it was to make durable: a later one
  // that succeeds does not help.
  void Fail(Operation operation, absl::Status error, uint64_t times = ~uint64_t{0});
  // Lets one operation of the kind fail, after `good` operations that succeed.
  void FailAfter(Operation operation, absl::Status error, uint64_t good);
  // Ends the effect of Fail, FailAfter and SetReadOnly.
  void Heal();
  // While true, every operation that changes something fails with FAILED_PRECONDITION.
  void SetReadOnly(bool read_only) { read_only_ = read_only; }
  // Sets how many bytes all files may have together; an Append beyond that writes the bytes that
  // fit and fails with RESOURCE_EXHAUSTED.
  void SetCapacity(uint64_t bytes) { capacity_ = bytes; }

  // Cuts the power and restores it: only surviving data is there, files that were open fail with
  // UNAVAILABLE for good, and locks are free.
  void Crash();
  // Cuts the power during the `count`th operation from now that changes something (1: the next).
  // From then on every operation fails with UNAVAILABLE until Crash is called.
  void PowerOffAt(uint64_t count) { power_off_at_ = changes_ + count; }
  bool powered_off() const { return powered_off_; }
  // With true a crash loses nothing, as when only the process ends and the kernel keeps its pages.
  void SetCrashLosesNothing(bool nothing) { crash_loses_nothing_ = nothing; }

  // --- Looking and meddling ---

  uint64_t changes() const { return changes_; }  // operations that changed something, or tried
  // Returns how many operations of the kind were begun, failed ones included.
  uint64_t operations(Operation operation) const;
  uint64_t bytes() const;                  // of all files
  std::vector<std::string> Paths() const;  // of all files, in order
  // Returns the contents as a reader sees them, synced or not; nullopt if there is no such file.
  std::optional<std::string> Contents(const std::string& path) const;
  // Creates a file with its directories, all of it durable.
  void SetContents(const std::string& path, std::string contents);
  // Damages one bit of a file. Returns false if the file does not exist or is not that long.
  bool FlipBit(const std::string& path, uint64_t bit);

  // FileSystem
  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> OpenForReading(const std::string& path) override;
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory,
                                          size_t entries_max) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& directory) override;
  absl::StatusOr<std::unique_ptr<Lock>> TakeLock(const std::string& path) override;
  absl::StatusOr<Capacity> CapacityOf(const std::string& directory) override;

 private:
  class OpenFile;
  class HeldLock;
  // A file or directory. Open files share it, so that a removed file stays readable.
  struct Node {
    bool is_directory = false;
    std::string contents;
    size_t synced = 0;                   // bytes that survive a crash
    size_t uncertain_from = ~size_t{0};  // a Sync failed: from here on nothing survives surely
  };
  using Tree = std::map<std::string, std::shared_ptr<Node>>;
  struct Change {  // of a directory's entries
    enum class Kind { kLink, kUnlink, kRename } kind = Kind::kLink;
    std::string path;
    std::string to;  // of a rename
    std::shared_ptr<Node> node;
  };

  // Makes one change of a directory in `tree`, which is tree_ or durable_.
  static void Apply(const Change& change, Tree& tree);
  // Counts the operation and returns the fault that it meets, if any. Sets `dies` when the power
  // goes off during it.
  absl::Status Begin(Operation operation, const std::string& path, bool* dies = nullptr);
  // Makes the change visible and remembers it as not yet synced.
  void Record(Change change);
  // Truncates and damages a file as a crash does.
  void Survive(Node& node);
  // Returns the visible file or directory at a path, or null.
  const Node* Find(const std::string& path) const;
  // Append to and sync a file, with the faults of the disk. OpenFile calls them.
  absl::Status Append(Node& node, const std::string& path, std::string_view bytes);
  absl::Status Sync(Node& node, const std::string& path);

  SeededRandom random_;
  Tree tree_;                                              // as it is seen
  Tree durable_;                                           // without what was not synced
  std::map<std::string, std::vector<Change>> changes_of_;  // by directory: not synced
  std::set<std::string> locks_;
  // The fault of one kind of operation: after `good_before` successes it fails `times` times.
  struct Fault {
    absl::Status error;
    uint64_t times = 0;
    uint64_t good_before = 0;
  };
  std::array<Fault, static_cast<size_t>(Operation::kCount)> faults_;
  std::array<uint64_t, static_cast<size_t>(Operation::kCount)> counts_{};
  // Bytes of all files together; by default without a limit.
  uint64_t capacity_ = ~uint64_t{0};
  uint64_t changes_ = 0;
  // The number of the change at which the power goes off; 0: none.
  uint64_t power_off_at_ = 0;
  uint64_t generation_ = 0;  // of open files: one more after each crash
  bool powered_off_ = false;
  bool read_only_ = false;
  bool crash_loses_nothing_ = false;
};

}  // namespace neurontrace
