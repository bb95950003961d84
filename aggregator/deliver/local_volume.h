// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "aggregator/deliver/volume.h"
#include "lib/base/unique_fd.h"

namespace neurontrace {

// A directory below one that the operator allows. Every part of every path is opened separately and
// never through a symbolic link, so that nothing that others put there leads outside. Errors,
// threads and ownership are those of Volume.
class LocalVolume final : public Volume {
 public:
  struct Options {
    // Must exist; the only path that may contain symbolic links.
    std::string root;
    // Relative to the root, "" for the root itself; created if it does not exist.
    std::string below;
    // Files are written under a temporary name and renamed. False: they are written under their own
    // name from the beginning, for volumes that cannot rename.
    bool renames = true;
    // Part of the names of temporary files.
    VolumeWriter writer;
  };
  // Fails with FAILED_PRECONDITION if the root cannot be opened or a part of `below` is not a
  // directory, and with INVALID_ARGUMENT if `below` is not a name that IsVolumeName accepts.
  static absl::StatusOr<std::unique_ptr<LocalVolume>> Open(Options options);

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name,
                                               Resumption resumption) override;
  absl::Status CreateOnce(const std::string& name, std::string_view bytes) override;
  absl::StatusOr<std::string> Read(const std::string& name, size_t bytes_max) override;
  absl::StatusOr<uint64_t> Size(const std::string& name) override;
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory,
                                          size_t entries_max) override;
  absl::Status Remove(const std::string& name) override;
  // Nothing to do: this volume gives no tokens.
  void Abandon(const std::string&, const std::string&) override {}
  void Sweep(const std::string& directory) override;
  std::string Where(const std::string& name) const override;

 private:
  LocalVolume(Options options, UniqueFd top) : options_(std::move(options)), top_(std::move(top)) {}
  // Returns a name that no other writer and no other file of this one uses.
  std::string TemporaryName(const std::string& base);

  const Options options_;
  // The directory `below`; all paths start here.
  const UniqueFd top_;
  uint64_t files_ = 0;
};

}  // namespace neurontrace
