// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "aggregator/exports/capture_export.h"
#include "aggregator/operator/capture_exporter.h"
#include "lib/base/sha256.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

// The beginning of a file that the caller already has, from an interrupted download. It is produced
// again, hashed and compared, but not sent. Used by one thread at a time.
class ResumePrefix {
 public:
  // For a file that the caller does not have.
  ResumePrefix() = default;
  ResumePrefix(uint64_t bytes, std::string sha256)
      : bytes_(bytes), left_(bytes), sha256_(std::move(sha256)) {}

  // Removes from the front of `bytes` what the caller has. Returns false if all of that has been
  // produced and differs from it.
  bool Skip(std::string_view& bytes);
  // Returns whether all that the caller has was produced again; Skip then compared it.
  bool is_through() const { return left_ == 0; }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
  // Bytes of it that have not been produced again, and the SHA-256 of all of it, as 32 bytes.
  uint64_t left_ = 0;
  std::string sha256_;
  Sha256 hash_;
};

// What the caller already has of each file, by name. Used by one thread at a time.
class ResumeState {
 public:
  // Fails with INVALID_ARGUMENT for a malformed entry and with RESOURCE_EXHAUSTED for more than
  // limits::kExportHeldFilesMax.
  static absl::StatusOr<ResumeState> Of(const v1::ExportRequest& request);

  // Returns the prefix of this file and forgets it; an empty prefix if the caller has nothing.
  ResumePrefix Take(std::string_view name);
  // Returns the first name that was not taken, or an empty text.
  std::string Untaken() const;
  uint64_t bytes() const { return bytes_; }

 private:
  absl::flat_hash_map<std::string, ResumePrefix> files_;
  // Of all files together.
  uint64_t bytes_ = 0;
};

// Writes the files of an export as replies of a gRPC call, in pieces of limited size, without what
// the caller already has. Used by one thread at a time.
class GrpcOutputFiles : public ExportFiles {
 public:
  // `write` must outlive this and its files.
  explicit GrpcOutputFiles(const ExportWriter& write, ResumeState held = {})
      : write_(write), held_(std::move(held)) {}

  // Opens a file. Fails, as the files' operations do, with CANCELLED if the client no longer reads.
  // They fail with ABORTED if a file does not begin with what the caller has, as the last reply
  // then stated. Open also fails with INVALID_ARGUMENT for an invalid or repeated name and with
  // RESOURCE_EXHAUSTED beyond limits::kExportFilesMax files.
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view name) override;
  // Fails with ABORTED, as above, if the caller has a file that this export did not produce. Called
  // once all files are closed, before `done`.
  absl::Status CheckHeld() const;

  // Includes the bytes that the caller already had.
  uint64_t bytes_sent() const override { return bytes_sent_; }

 private:
  const ExportWriter& write_;
  ResumeState held_;
  absl::flat_hash_set<std::string> names_;
  uint64_t bytes_sent_ = 0;
};

}  // namespace neurontrace
