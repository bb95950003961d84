// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "aggregator/export/output_files.h"
#include "aggregator/operator/operator_service.h"

namespace neurontrace {

// The files of an export as replies to who asked for it, in pieces of bounded size.
class ReplyFiles : public OutputFiles {
 public:
  // `write` outlives it and its files.
  explicit ReplyFiles(const ExportWriter& write) : write_(write) {}

  // CANCELLED when nobody listens any more; so do the files.
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view name) override;

 private:
  const ExportWriter& write_;
  absl::flat_hash_set<std::string> names_;
};

}  // namespace neurontrace
