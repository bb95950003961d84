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
// s3://BUCKET/PREFIX. An operator configures it. A plain value.
struct ExportRoot {
  std::string path;
  // See LocalVolume::Options.
  bool renames = true;
};

// Returns whether the text has the form of a destination, beginning with / or s3://, rather than
// that of a time.
bool IsDestination(std::string_view text);

// Returns an empty text for an acceptable root, and else what is wrong with it.
std::string CheckExportRoot(const std::string& path);

// The places where exports may be delivered. Constant after construction, so that any thread may
// use it.
class ExportRoots {
 public:
  // `s3` describes the service of roots in buckets. Credentials come from this process's
  // environment.
  explicit ExportRoots(std::vector<ExportRoot> roots, S3Service s3 = {});

  // Returns the destination in its normal form, without doubled and trailing slashes. Fails with
  // INVALID_ARGUMENT if it is malformed and with FAILED_PRECONDITION, naming the roots, if it is
  // below none of them.
  absl::StatusOr<std::string> Check(std::string_view destination) const;
  // Opens the destination, creating directories below the root as necessary. Fails as Check does,
  // and as LocalVolume::Open or S3Client::Make do. `writer` is described at Volume.
  absl::StatusOr<std::unique_ptr<Volume>> Open(std::string_view destination,
                                               VolumeWriter writer) const;

 private:
  struct Place {
    const ExportRoot* root = nullptr;
    std::string below;
  };
  // Returns the deepest root above the destination, and the rest of the path.
  absl::StatusOr<Place> Find(std::string_view destination) const;

  const std::vector<ExportRoot> roots_;
  const S3Service s3_;
};

}  // namespace neurontrace
