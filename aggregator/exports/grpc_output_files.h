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

// The beginning of a file that who asks for an export has already: it is made again, hashed and
// compared, and not sent. One thread at a time.
class ResumePrefix {
 public:
  ResumePrefix() = default;  // of nothing
  ResumePrefix(uint64_t bytes, std::string sha256)
      : bytes_(bytes), left_(bytes), sha256_(std::move(sha256)) {}

  // Takes off `bytes` what is held; false where all of it has come by now and is not the same.
  bool Skip(std::string_view& bytes);
  // Whether all that is held has come, and is the same.
  bool is_through() const { return left_ == 0; }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
  uint64_t left_ = 0;
  std::string sha256_;
  Sha256 hash_;
};

// All of them, by name. One thread at a time.
class ResumeState {
 public:
  // INVALID_ARGUMENT for what makes no sense, RESOURCE_EXHAUSTED beyond
  // limits::kExportHeldFilesMax.
  static absl::StatusOr<ResumeState> Of(const v1::ExportRequest& request);

  // Of nothing where none is held. Each is taken once.
  ResumePrefix Take(std::string_view name);
  // The first that nobody took; empty: none.
  std::string Untaken() const;
  uint64_t bytes() const { return bytes_; }

 private:
  absl::flat_hash_map<std::string, ResumePrefix> files_;
  uint64_t bytes_ = 0;  // of all together
};

// The files of an export as replies to who asked for it, in pieces of bounded size, without what
// they have already.
class GrpcOutputFiles : public ExportFiles {
 public:
  // `write` outlives it and its files.
  explicit GrpcOutputFiles(const ExportWriter& write, ResumeState held = {})
      : write_(write), held_(std::move(held)) {}

  // CANCELLED when nobody listens any more; so do the files, and ABORTED where a file does not
  // begin as it is held: that was the last reply.
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view name) override;
  // ABORTED likewise for a file that is held and was not among them. Called once they are all
  // closed, before `done`.
  absl::Status CheckHeld() const;

  // With what was held.
  uint64_t bytes_sent() const override { return bytes_sent_; }

 private:
  const ExportWriter& write_;
  ResumeState held_;
  absl::flat_hash_set<std::string> names_;
  uint64_t bytes_sent_ = 0;
};

}  // namespace neurontrace
