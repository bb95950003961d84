// SPDX-License-Identifier: Apache-2.0
#include "lib/base/fake_file_system.h"

#include <algorithm>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return "";
  return slash == 0 ? "/" : path.substr(0, slash);
}

constexpr size_t Index(FakeFileSystem::Operation operation) {
  return static_cast<size_t>(operation);
}

// Which operations a power cut can tear, and a read-only disk refuses.
bool Changes(FakeFileSystem::Operation operation) {
  using Operation = FakeFileSystem::Operation;
  return operation != Operation::kOpen && operation != Operation::kRead &&
         operation != Operation::kList && operation != Operation::kLock;
}

}  // namespace

// Holds the node rather than the path: a file that is renamed or removed while open stays readable,
// as POSIX has it.
class FakeFileSystem::OpenFile final : public FileSystem::File {
 public:
  OpenFile(FakeFileSystem& disk, std::string path, std::shared_ptr<Node> node)
      : disk_(disk), path_(std::move(path)), node_(std::move(node)), made_in_(disk.generation_) {}

  absl::Status Append(std::string_view bytes) override {
    RETURN_IF_ERROR(CheckOpen());
    return disk_.Append(*node_, path_, bytes);
  }
  absl::Status Sync() override {
    RETURN_IF_ERROR(CheckOpen());
    return disk_.Sync(*node_, path_);
  }
  absl::StatusOr<std::string> Read(uint64_t offset, size_t bytes_max) override {
    RETURN_IF_ERROR(CheckOpen());
    RETURN_IF_ERROR(disk_.Begin(Operation::kRead, path_));
    if (offset >= node_->contents.size()) return std::string();
    return node_->contents.substr(static_cast<size_t>(offset), bytes_max);
  }
  absl::StatusOr<uint64_t> Size() override {
    RETURN_IF_ERROR(CheckOpen());
    return uint64_t{node_->contents.size()};
  }

 private:
  // After a crash descriptors of the old process are gone. A caller that still uses one shall
  // notice.
  absl::Status CheckOpen() const {
    if (made_in_ == disk_.generation_) return absl::OkStatus();
    return Unavailable("{} was open when the power failed", path_);
  }

  FakeFileSystem& disk_;
  const std::string path_;
  const std::shared_ptr<Node> node_;
  const uint64_t made_in_;
};

class FakeFileSystem::HeldLock final : public FileSystem::Lock {
 public:
  HeldLock(FakeFileSystem& disk, std::string path)
      : disk_(disk), path_(std::move(path)), made_in_(disk.generation_) {}
  ~HeldLock() override {
    if (made_in_ == disk_.generation_) disk_.locks_.erase(path_);
  }

 private:
  FakeFileSystem& disk_;
  const std::string path_;
  const uint64_t made_in_;
};

FakeFileSystem::~FakeFileSystem() = default;

// --- Faults --------------------------------------------------------------------------------------

void FakeFileSystem::Fail(Operation operation, absl::Status error, uint64_t times) {
  faults_[Index(operation)] = {std::move(error), times, 0};
}

void FakeFileSystem::FailAfter(Operation operation, absl::Status error, uint64_t good) {
  faults_[Index(operation)] = {std::move(error), 1, good};
}

void FakeFileSystem::Heal() {
  for (auto& fault : faults_) fault = {};
  read_only_ = false;
}

// The order matters: without power nothing else counts, and a power cut is counted also on a
// read-only disk.
absl::Status FakeFileSystem::Begin(Operation operation, const std::string& path, bool* dies) {
  ++counts_[Index(operation)];
  if (powered_off_) return Unavailable("{}: the power is off", path);
  if (Changes(operation)) {
    ++changes_;
    // The change that dies is the one that is counted: Append is torn by it, every other operation
    // does not happen.
    if (changes_ == power_off_at_) {
      powered_off_ = true;
      if (dies != nullptr) *dies = true;
      return Unavailable("{}: the power failed", path);
    }
    if (read_only_) return FailedPrecondition("{}: the file system is read-only", path);
  }
  auto& [error, times, good_before] = faults_[Index(operation)];
  if (times == 0 || error.ok()) return absl::OkStatus();
  if (good_before > 0) {
    --good_before;
    return absl::OkStatus();
  }
  --times;
  return absl::Status(error.code(), std::string(error.message()) + ": " + path);
}

void FakeFileSystem::Apply(const Change& change, Tree& tree) {
  switch (change.kind) {
    case Change::Kind::kLink:
      tree[change.path] = change.node;
      return;
    case Change::Kind::kUnlink:
      tree.erase(change.path);
      return;
    case Change::Kind::kRename:
      tree.erase(change.path);
      tree[change.to] = change.node;
      return;
  }
}

void FakeFileSystem::Record(Change change) {
  Apply(change, tree_);
  // A rename is a change of the directory that it moves into.
  const std::string& where = change.to.empty() ? change.path : change.to;
  changes_of_[ParentOf(where)].push_back(std::move(change));
}

// Leaves of a file what a crash leaves: everything that was synced, and any part of the rest.
void FakeFileSystem::Survive(Node& node) {
  const size_t sure = std::min({node.synced, node.uncertain_from, node.contents.size()});
  const size_t unsure = node.contents.size() - sure;
  if (unsure > 0) {
    node.contents.resize(sure + random_.Next64() % (unsure + 1));
    const size_t left = node.contents.size() - sure;
    // The length may be on the disk before the bytes are: they are zeros then, or in part.
    if (left > 0 && random_.Next64() % 3 == 0) {
      const size_t from = sure + random_.Next64() % left;
      std::fill(node.contents.begin() + static_cast<std::ptrdiff_t>(from), node.contents.end(),
                '\0');
    }
  }
  node.synced = node.contents.size();
  node.uncertain_from = ~size_t{0};
}

void FakeFileSystem::Crash() {
  if (!crash_loses_nothing_) {
    for (const auto& [directory, changes] : changes_of_) {
      // A journal keeps changes of one directory in order, so a prefix of them survives.
      // Directories are independent.
      const size_t kept = random_.Next64() % (changes.size() + 1);
      for (size_t i = 0; i < kept; ++i) Apply(changes[i], durable_);
    }
    tree_ = durable_;
    // Contents of a directory that did not survive have not survived either. The map is sorted, so
    // parents come before children.
    for (auto it = tree_.begin(); it != tree_.end();) {
      const std::string parent = ParentOf(it->first);
      const bool orphan = parent != "" && parent != "/" && !tree_.contains(parent);
      it = orphan ? tree_.erase(it) : std::next(it);
    }
    for (auto& [path, node] : tree_) Survive(*node);
  }
  for (auto& [path, node] : tree_) {
    // Files that were open keep the old node, so that a write of the old process cannot reach the
    // new disk.
    node = std::make_shared<Node>(*node);
    node->synced = node->contents.size();
  }
  durable_ = tree_;
  changes_of_.clear();
  locks_.clear();
  ++generation_;
  powered_off_ = false;
  power_off_at_ = 0;
}

// --- Looking and meddling ------------------------------------------------------------------------

uint64_t FakeFileSystem::operations(Operation operation) const { return counts_[Index(operation)]; }

uint64_t FakeFileSystem::bytes() const {
  uint64_t sum = 0;
  for (const auto& [path, node] : tree_) sum += node->contents.size();
  return sum;
}

std::vector<std::string> FakeFileSystem::Paths() const {
  std::vector<std::string> paths;
  for (const auto& [path, node] : tree_) {
    if (!node->is_directory) paths.push_back(path);
  }
  return paths;
}

std::optional<std::string> FakeFileSystem::Contents(const std::string& path) const {
  const Node* const node = Find(path);
  if (node == nullptr || node->is_directory) return std::nullopt;
  return node->contents;
}

void FakeFileSystem::SetContents(const std::string& path, std::string contents) {
  for (std::string parent = ParentOf(path); parent != "" && parent != "/";
       parent = ParentOf(parent)) {
    if (tree_.contains(parent)) continue;
    auto directory = std::make_shared<Node>();
    directory->is_directory = true;
    tree_[parent] = durable_[parent] = directory;
  }
  auto node = std::make_shared<Node>();
  node->synced = contents.size();
  node->contents = std::move(contents);
  tree_[path] = durable_[path] = node;
}

bool FakeFileSystem::FlipBit(const std::string& path, uint64_t bit) {
  const auto it = tree_.find(path);
  if (it == tree_.end() || bit / 8 >= it->second->contents.size()) return false;
  char& byte = it->second->contents[static_cast<size_t>(bit / 8)];
  byte = static_cast<char>(byte ^ (1 << (bit % 8)));
  return true;
}

const FakeFileSystem::Node* FakeFileSystem::Find(const std::string& path) const {
  const auto it = tree_.find(path);
  return it == tree_.end() ? nullptr : it->second.get();
}

// --- FileSystem ----------------------------------------------------------------------------------

absl::Status FakeFileSystem::Append(Node& node, const std::string& path, std::string_view bytes) {
  bool dies = false;
  absl::Status status = Begin(Operation::kAppend, path, &dies);
  size_t fits = bytes.size();
  if (status.ok() && capacity_ != ~uint64_t{0}) {
    const uint64_t used = this->bytes();
    const uint64_t room = capacity_ > used ? capacity_ - used : 0;
    if (room < fits) {
      fits = static_cast<size_t>(room);
      status = ResourceExhausted("{}: no space left on device", path);
    }
  } else if (!status.ok()) {
    // An append that a fault or the power cut meets leaves any part of its bytes; a disk that was
    // off or read-only before, none.
    const bool torn = dies || (!powered_off_ && !read_only_);
    fits = torn ? random_.Next64() % (bytes.size() + 1) : 0;
  }
  node.contents.append(bytes.substr(0, fits));
  return status;
}

absl::Status FakeFileSystem::Sync(Node& node, const std::string& path) {
  if (absl::Status status = Begin(Operation::kSync, path); !status.ok()) {
    // As Linux does it: after a failed fsync the kernel marks the pages clean, so the next fsync
    // succeeds without having written them ("PostgreSQL's fsync() surprise", LWN, April 2018).
    if (!powered_off_) node.uncertain_from = std::min(node.uncertain_from, node.synced);
    return status;
  }
  node.synced = node.contents.size();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileSystem::File>> FakeFileSystem::Create(const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kCreate, path));
  const std::string parent = ParentOf(path);
  if (parent != "" && parent != "/" && Find(parent) == nullptr) {
    return NotFound("cannot create {}: no such directory", path);
  }
  if (const Node* const there = Find(path); there != nullptr && there->is_directory) {
    return Unavailable("cannot create {}: it is a directory", path);
  }
  auto node = std::make_shared<Node>();
  Record({.kind = Change::Kind::kLink, .path = path, .to = "", .node = node});
  return std::make_unique<OpenFile>(*this, path, std::move(node));
}

absl::StatusOr<std::unique_ptr<FileSystem::File>> FakeFileSystem::OpenForReading(
    const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kOpen, path));
  const auto it = tree_.find(path);
  if (it == tree_.end() || it->second->is_directory) return NotFound("cannot open {}", path);
  return std::make_unique<OpenFile>(*this, path, it->second);
}

absl::StatusOr<std::vector<FileSystem::Entry>> FakeFileSystem::List(const std::string& directory,
                                                                    size_t entries_max) {
  RETURN_IF_ERROR(Begin(Operation::kList, directory));
  const Node* const node = Find(directory);
  if (node == nullptr || !node->is_directory) return NotFound("cannot list {}", directory);
  std::vector<Entry> entries;
  const std::string prefix = directory + "/";
  for (auto it = tree_.lower_bound(prefix); it != tree_.end() && it->first.starts_with(prefix);
       ++it) {
    const std::string name = it->first.substr(prefix.size());
    if (name.find('/') != std::string::npos) continue;
    if (entries.size() >= entries_max) {
      return ResourceExhausted("{} has more than {} entries", directory, entries_max);
    }
    entries.push_back({name, it->second->is_directory, it->second->contents.size()});
  }
  return entries;
}

absl::Status FakeFileSystem::MakeDirectory(const std::string& path) {
  const Node* const known = Find(path);
  // A directory that exists already is not a change, and no fault meets it.
  if (known != nullptr && known->is_directory && !powered_off_) return absl::OkStatus();
  RETURN_IF_ERROR(Begin(Operation::kMakeDirectory, path));
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    const Node* const there = Find(part);
    if (there != nullptr && !there->is_directory) {
      return NotFound("cannot create directory {}: it is a file", part);
    }
    if (there == nullptr) {
      auto node = std::make_shared<Node>();
      node->is_directory = true;
      Record({.kind = Change::Kind::kLink, .path = part, .to = "", .node = std::move(node)});
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

absl::Status FakeFileSystem::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Begin(Operation::kRename, from));
  const auto it = tree_.find(from);
  if (it == tree_.end()) return NotFound("cannot rename {}", from);
  Record({.kind = Change::Kind::kRename, .path = from, .to = to, .node = it->second});
  return absl::OkStatus();
}

absl::Status FakeFileSystem::Remove(const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kRemove, path));
  const Node* const node = Find(path);
  if (node == nullptr) return NotFound("cannot remove {}", path);
  const auto inside = tree_.lower_bound(path + "/");
  if (node->is_directory && inside != tree_.end() && inside->first.starts_with(path + "/")) {
    return AlreadyExists("cannot remove {}: it is not empty", path);
  }
  Record({.kind = Change::Kind::kUnlink, .path = path, .to = "", .node = nullptr});
  return absl::OkStatus();
}

absl::Status FakeFileSystem::SyncDirectory(const std::string& directory) {
  RETURN_IF_ERROR(Begin(Operation::kSyncDirectory, directory));
  for (const Change& change : changes_of_[directory]) Apply(change, durable_);
  changes_of_.erase(directory);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileSystem::Lock>> FakeFileSystem::TakeLock(
    const std::string& path) {
  RETURN_IF_ERROR(Begin(Operation::kLock, path));
  if (!locks_.insert(path).second) {
    return FailedPrecondition("{} is locked by another process", path);
  }
  return std::make_unique<HeldLock>(*this, path);
}

absl::StatusOr<FileSystem::Capacity> FakeFileSystem::CapacityOf(const std::string&) {
  return Capacity{.total_bytes = capacity_, .free_bytes = capacity_ - std::min(capacity_, bytes())};
}

}  // namespace neurontrace
