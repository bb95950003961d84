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

// A disk in memory that is as unkind as real ones are, for tests. At a crash it forgets what was
// not synced: of a file's unsynced bytes any number is left, and what is left may be damaged; of a
// directory's unsynced changes the first few are left, in order, as journals keep it. Everything it
// chooses comes from the seed, so that a run is repeatable. One thread.
class FakeFileSystem final : public FileSystem {
 public:
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
  // One operation of the kind fails, behind `good` ones that do not.
  void FailAfter(Operation operation, absl::Status error, uint64_t good);
  void Heal();  // none of Fail and SetReadOnly any more
  // Whatever changes something fails with FAILED_PRECONDITION.
  void SetReadOnly(bool read_only) { read_only_ = read_only; }
  // How many bytes files may have in all; an Append beyond writes what fits and fails with
  // RESOURCE_EXHAUSTED.
  void SetCapacity(uint64_t bytes) { capacity_ = bytes; }

  // The power goes off now, and on again: only what survives is there, files that were open fail
  // with UNAVAILABLE for good, and locks are free.
  void Crash();
  // The power goes off during the `count`th operation from now that changes something (1: the
  // next). From then on everything fails with UNAVAILABLE until Crash is called.
  void PowerOffAt(uint64_t count) { power_off_at_ = changes_ + count; }
  bool powered_off() const { return powered_off_; }
  // Nothing is lost at a crash, as when only the process ends.
  void SetCrashLosesNothing(bool nothing) { crash_loses_nothing_ = nothing; }

  // --- Looking and meddling ---

  uint64_t changes() const { return changes_; }  // operations that changed something, or tried
  uint64_t operations(Operation operation) const;
  uint64_t bytes() const;                  // of all files
  std::vector<std::string> Paths() const;  // of all files, in order
  std::optional<std::string> Contents(const std::string& path) const;
  // Puts a file there, durably, with its directories.
  void SetContents(const std::string& path, std::string contents);
  // False if the file is not there or not that long.
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
  struct Node {
    bool is_directory = false;
    std::string contents;
    size_t synced = 0;                  // bytes that survive a crash
    size_t doubtful_from = ~size_t{0};  // a Sync failed: from here on nothing survives surely
  };
  using Tree = std::map<std::string, std::shared_ptr<Node>>;
  struct Change {  // of a directory's entries
    enum class Kind { kLink, kUnlink, kRename } kind = Kind::kLink;
    std::string path;
    std::string to;  // of a rename
    std::shared_ptr<Node> node;
  };

  static void Apply(const Change& change, Tree& tree);
  // The fault that the operation meets, if any; counts it. `dies` is set when the power goes off
  // during it.
  absl::Status Begin(Operation operation, const std::string& path, bool* dies = nullptr);
  void Record(Change change);
  void Survive(Node& node);
  const Node* Find(const std::string& path) const;
  absl::Status Append(Node& node, const std::string& path, std::string_view bytes);
  absl::Status Sync(Node& node, const std::string& path);

  SeededRandom random_;
  Tree tree_;                                              // as it is seen
  Tree durable_;                                           // without what was not synced
  std::map<std::string, std::vector<Change>> changes_of_;  // by directory: not synced
  std::set<std::string> locks_;
  struct Fault {
    absl::Status error;
    uint64_t times = 0;
    uint64_t good_before = 0;
  };
  std::array<Fault, static_cast<size_t>(Operation::kCount)> faults_;
  std::array<uint64_t, static_cast<size_t>(Operation::kCount)> counts_{};
  uint64_t capacity_ = ~uint64_t{0};
  uint64_t changes_ = 0;
  uint64_t power_off_at_ = 0;
  uint64_t generation_ = 0;  // of open files: one more after each crash
  bool powered_off_ = false;
  bool read_only_ = false;
  bool crash_loses_nothing_ = false;
};

}  // namespace neurontrace
