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

// A directory below one that the operator allows. Every part of every path is opened by itself and
// never through a symbolic link, so nothing that others put there leads out.
class LocalVolume final : public Volume {
 public:
  struct Options {
    std::string root;   // is there; the one path that may hold symbolic links
    std::string below;  // relative to it, "" for itself; made where it is not there
    // Files are written under a temporary name and renamed. Without: under their own from the
    // beginning, for volumes that cannot rename.
    bool renames = true;
    VolumeWriter writer;  // in the names of temporary files
  };
  // FAILED_PRECONDITION where the root is not there, or a part of `below` is no directory.
  static absl::StatusOr<std::unique_ptr<LocalVolume>> Open(Options options);

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name,
                                               Resumption resumption) override;
  absl::Status CreateOnce(const std::string& name, std::string_view bytes) override;
  absl::StatusOr<std::string> Read(const std::string& name, size_t bytes_max) override;
  absl::StatusOr<uint64_t> Size(const std::string& name) override;
  absl::StatusOr<std::vector<Entry>> List(const std::string& directory,
                                          size_t entries_max) override;
  absl::Status Remove(const std::string& name) override;
  void Abandon(const std::string&, const std::string&) override {}  // gives no tokens
  void Sweep(const std::string& directory) override;
  std::string Where(const std::string& name) const override;

 private:
  LocalVolume(Options options, UniqueFd top) : options_(std::move(options)), top_(std::move(top)) {}
  std::string TemporaryName(const std::string& base);

  const Options options_;
  const UniqueFd top_;  // the directory itself
  uint64_t files_ = 0;
};

}  // namespace neurontrace
