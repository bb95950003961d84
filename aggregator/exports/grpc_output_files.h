// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "aggregator/exports/capture_export.h"
#include "aggregator/exports/resume_prefix.h"
#include "aggregator/exports/resume_state.h"
#include "aggregator/operator/capture_exporter.h"
#include "neurontrace/v1/operator_service.pb.h"

namespace neurontrace {

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
