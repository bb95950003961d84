// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "aggregator/capture_export.h"
#include "aggregator/held_files.h"
#include "aggregator/operator/operator_service.h"

namespace neurontrace {

// The files of an export as replies to who asked for it, in pieces of bounded size, without what
// they have already.
class ReplyFiles : public ExportFiles {
 public:
  // `write` outlives it and its files.
  explicit ReplyFiles(const ExportWriter& write, HeldFiles held = {})
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
  HeldFiles held_;
  absl::flat_hash_set<std::string> names_;
  uint64_t bytes_sent_ = 0;
};

}  // namespace neurontrace
