// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/deliver/volume.h"
#include "lib/base/status.h"

namespace neurontrace {

// A volume in memory that is as unkind as real ones are. Several FakeVolumes on one Disk are
// several processes.
class FakeVolume final : public Volume {
 public:
  // The content of a volume, which survives the volumes of crashed processes. Owned by the test.
  struct Disk {
    std::map<std::string, std::string> files;
    bool renames = true;
    // Of all files together: beyond, the volume is full.
    uint64_t bytes_max = UINT64_MAX;
    uint64_t realtime_ns = 1'700'000'000'000'000'000;
    // Changes of all volumes of this disk so far.
    uint64_t writes = 0;
    // If false, nothing can be read or listed.
    bool answers = true;
    // Called before each change with the operation ("make", "write", "commit", "remove" and so on)
    // and the name.
    std::function<void(const std::string& what, const std::string& name)> before;
  };

  // The volume stops working with its `dies_at`th change, like one whose process has died: neither
  // that change nor any later one takes place.
  explicit FakeVolume(Disk& disk, uint64_t dies_at = UINT64_MAX) : disk_(disk), dies_at_(dies_at) {}

  uint64_t changes() const { return changes_; }

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name, Resumption) override {
    if (!IsVolumeName(name)) return InvalidArgument("'{}'", name);
    RETURN_IF_ERROR(Change("make", name));
    // A volume without rename shows the file from its begin on.
    if (!disk_.renames) disk_.files[name] = "";
    return std::make_unique<FakeFile>(*this, name);
  }
  absl::Status CreateOnce(const std::string& name, std::string_view bytes) override {
    RETURN_IF_ERROR(Change("make once", name));
    if (disk_.files.contains(name)) return AlreadyExists("{}", name);
    disk_.files[name] = std::string(bytes);
    return absl::OkStatus();
  }
  absl::StatusOr<std::string> Read(const std::string& name, size_t bytes_max) override {
    if (!disk_.answers) return Unavailable("cannot read {}", name);
    const auto found = disk_.files.find(name);
    if (found == disk_.files.end()) return NotFound("{}", name);
    if (found->second.size() > bytes_max) return absl::OutOfRangeError(name);
    return found->second;
  }
  absl::StatusOr<uint64_t> Size(const std::string& name) override {
    const auto found = disk_.files.find(name);
    if (found == disk_.files.end()) return NotFound("{}", name);
    return found->second.size();
  }
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory, size_t) override {
    if (!disk_.answers) return Unavailable("cannot list {}", directory);
    std::vector<Entry> entries;
    for (const auto& [name, bytes] : disk_.files) {
      const bool is_in = name.starts_with(directory + "/") &&
                         name.find('/', directory.size() + 1) == std::string::npos;
      if (is_in) {
        entries.push_back({name.substr(directory.size() + 1), bytes.size(), disk_.realtime_ns});
      }
    }
    return entries;
  }
  absl::Status Remove(const std::string& name) override {
    RETURN_IF_ERROR(Change("remove", name));
    disk_.files.erase(name);
    return absl::OkStatus();
  }
  void Abandon(const std::string&, const std::string&) override {}
  void Sweep(const std::string&) override {}
  std::string Where(const std::string& name) const override { return "/fake/" + name; }

 private:
  class FakeFile : public File {
   public:
    FakeFile(FakeVolume& volume, std::string name) : volume_(volume), name_(std::move(name)) {}
    ~FakeFile() override {
      // Without renames a crash leaves the half file; only a living process removes it.
      const bool goes = !is_whole_ && !volume_.disk_.renames && volume_.lives();
      if (goes) volume_.disk_.files.erase(name_);
    }
    absl::Status Write(std::string_view bytes) override {
      RETURN_IF_ERROR(volume_.Change("write", name_));
      bytes_ += bytes;
      RETURN_IF_ERROR(volume_.CheckRoom(bytes_.size()));
      if (!volume_.disk_.renames) volume_.disk_.files[name_] = bytes_;
      return absl::OkStatus();
    }
    absl::Status Sync() override { return volume_.Change("sync", name_); }
    absl::Status Commit() override {
      RETURN_IF_ERROR(volume_.Change("commit", name_));
      volume_.disk_.files[name_] = std::move(bytes_);
      is_whole_ = true;
      return absl::OkStatus();
    }

   private:
    FakeVolume& volume_;
    const std::string name_;
    std::string bytes_;
    bool is_whole_ = false;
  };

  bool lives() const { return changes_ < dies_at_; }
  absl::Status Change(const std::string& what, const std::string& name) {
    if (disk_.before) disk_.before(what, name);
    if (!lives()) return Unavailable("the process is gone");
    ++changes_;
    if (!lives()) return Unavailable("the process is gone");
    ++disk_.writes;
    return absl::OkStatus();
  }
  absl::Status CheckRoom(uint64_t more) const {
    for (const auto& [name, bytes] : disk_.files) more += bytes.size();
    if (more > disk_.bytes_max) return ResourceExhausted("the volume is full");
    return absl::OkStatus();
  }

  Disk& disk_;
  const uint64_t dies_at_;
  uint64_t changes_ = 0;
};

}  // namespace neurontrace
