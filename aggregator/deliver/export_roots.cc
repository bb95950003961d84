// SPDX-License-Identifier: Apache-2.0
#include "aggregator/deliver/export_roots.h"

#include <utility>

#include "aggregator/deliver/local_volume.h"
#include "aggregator/deliver/s3_volume.h"
#include "lib/base/status.h"

namespace neurontrace {
namespace {

constexpr std::string_view kS3Scheme = "s3://";

// Returns the parts between slashes as a relative path. Parts ".." are refused rather than
// resolved: resolving them would require knowing symbolic links.
absl::StatusOr<std::string> PartsOf(std::string_view path, std::string_view whole) {
  std::string parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty() || part == ".") continue;
    if (!parts.empty()) parts += '/';
    parts += part;
  }
  if (!parts.empty() && !IsVolumeName(parts)) {
    return InvalidArgument(
        "'{}' is not a valid destination: its parts must be names without .. and control "
        "characters",
        whole);
  }
  return parts;
}

// Keeps the scheme and removes doubled and trailing slashes, so that one place has one name in
// rules, logs and comparisons with roots.
absl::StatusOr<std::string> Normalize(std::string_view destination) {
  if (!IsDestination(destination)) {
    return InvalidArgument(
        "'{}' is not a destination; write an absolute directory or {}BUCKET/PREFIX", destination,
        kS3Scheme);
  }
  const bool is_s3 = destination.starts_with(kS3Scheme);
  ASSIGN_OR_RETURN(const std::string parts,
                   PartsOf(destination.substr(is_s3 ? kS3Scheme.size() : 1), destination));
  if (is_s3 && parts.empty()) return InvalidArgument("'{}' has no bucket", destination);
  return (is_s3 ? std::string(kS3Scheme) : "/") + parts;
}

// The roots were checked when options were parsed; an invalid one stays as it is and matches
// nothing.
std::vector<ExportRoot> Normalized(std::vector<ExportRoot> roots) {
  for (ExportRoot& root : roots) root.path = Normalize(root.path).value_or(root.path);
  return roots;
}

}  // namespace

bool IsDestination(std::string_view text) {
  return text.starts_with('/') || text.starts_with(kS3Scheme);
}

std::string CheckExportRoot(const std::string& path) {
  const auto normal = Normalize(path);
  if (!normal.ok()) return std::string(normal.status().message());
  // The root of the file system would allow an export to overwrite anything.
  if (*normal == "/") return "/ cannot be an export root; choose a directory for exports";
  return "";
}

ExportRoots::ExportRoots(std::vector<ExportRoot> roots, S3Service s3)
    : roots_(Normalized(std::move(roots))), s3_(std::move(s3)) {}

absl::StatusOr<std::string> ExportRoots::Check(std::string_view destination) const {
  RETURN_IF_ERROR(Find(destination).status());
  return Normalize(destination);
}

// Normal forms are compared as texts, so that a symbolic link below a root is not resolved here;
// LocalVolume refuses it.
absl::StatusOr<ExportRoots::Place> ExportRoots::Find(std::string_view destination) const {
  ASSIGN_OR_RETURN(const std::string normal, Normalize(destination));
  Place place;
  std::string known;
  for (const ExportRoot& root : roots_) {
    known += (known.empty() ? "" : ", ") + root.path;
    // With the slash: /exports2 is not below /exports.
    const bool is_below = normal == root.path || normal.starts_with(root.path + "/");
    const bool is_deeper = place.root == nullptr || root.path.size() > place.root->path.size();
    if (!is_below || !is_deeper) continue;
    place.root = &root;
    place.below = normal.size() > root.path.size() ? normal.substr(root.path.size() + 1) : "";
  }
  if (place.root != nullptr) return place;
  if (known.empty()) {
    return FailedPrecondition(
        "{} cannot be written: the aggregator has no export root; start it with --export-root "
        "DIRECTORY",
        normal);
  }
  return FailedPrecondition("{} is not below any of the aggregator's export roots: {}", normal,
                            known);
}

absl::StatusOr<std::unique_ptr<Volume>> ExportRoots::Open(std::string_view destination,
                                                          VolumeWriter writer) const {
  ASSIGN_OR_RETURN(const Place place, Find(destination));
  const std::string_view root(place.root->path);
  if (root.starts_with(kS3Scheme)) {
    const std::string_view rest = root.substr(kS3Scheme.size());
    const size_t slash = rest.find('/');
    std::string prefix(slash == std::string_view::npos ? "" : rest.substr(slash + 1));
    if (!place.below.empty()) prefix += (prefix.empty() ? "" : "/") + place.below;
    ASSIGN_OR_RETURN(std::unique_ptr<S3Client> client,
                     S3Client::Make(s3_, std::string(rest.substr(0, slash)), SystemEnvironment));
    return std::make_unique<S3Volume>(std::move(client), std::move(prefix),
                                      std::move(writer.nonce));
  }
  return LocalVolume::Open({.root = place.root->path,
                            .below = place.below,
                            .renames = place.root->renames,
                            .writer = std::move(writer)});
}

}  // namespace neurontrace
