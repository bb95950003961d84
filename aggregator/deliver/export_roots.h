// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/deliver/s3_client.h"
#include "aggregator/deliver/volume.h"

namespace neurontrace {

// A place below which this aggregator may write exports: an absolute directory or
// s3://BUCKET/PREFIX.
struct ExportRoot {
  std::string path;
  bool renames = true;  // LocalVolume::Options
};

// True for what names a destination and not a time: it begins with / or s3://.
bool IsDestination(std::string_view text);

// Empty for a root that can be one, else what is wrong with it.
std::string CheckExportRoot(const std::string& path);

// The places where exports may be delivered. Constant; any thread.
class ExportRoots {
 public:
  // `s3`: for roots in buckets, with the credentials of this process's environment.
  explicit ExportRoots(std::vector<ExportRoot> roots, S3Service s3 = {});

  // The destination as it is named everywhere: without doubled and trailing slashes.
  // INVALID_ARGUMENT for what is none, FAILED_PRECONDITION, with the roots, for one below none of
  // them.
  absl::StatusOr<std::string> Check(std::string_view destination) const;
  // Opens it, and makes it where it is not there. `writer`: see Volume.
  absl::StatusOr<std::unique_ptr<Volume>> Open(std::string_view destination,
                                               VolumeWriter writer) const;

 private:
  struct Place {
    const ExportRoot* root = nullptr;
    std::string below;
  };
  absl::StatusOr<Place> Find(std::string_view destination) const;

  const std::vector<ExportRoot> roots_;
  const S3Service s3_;
};

}  // namespace neurontrace
