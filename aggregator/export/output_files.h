// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "aggregator/export/byte_sink.h"

namespace neurontrace {

// One file of an export. What is not closed is not whole: who receives it throws it away.
class OutputFile : public ByteSink {
 public:
  // All bytes are there. Called once, at the end; nothing is written after it.
  virtual absl::Status Close() = 0;
};

// The files that an export makes. Abstract because they go to a network stream, a directory or a
// bucket. One thread at a time, as the files it opens; it outlives them.
class OutputFiles {
 public:
  virtual ~OutputFiles() = default;
  // Begins a file; several can be open. `name` is a relative path as IsOutputName allows, new in
  // this export. INVALID_ARGUMENT for another, RESOURCE_EXHAUSTED beyond
  // limits::kExportFilesMax.
  virtual absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view name) = 0;
};

// True for a relative path of parts of letters, digits and "._-=+@", none of them "." or "..", of
// at most limits::kExportNameBytesMax bytes: it stays below where it is put on any file system.
bool IsOutputName(std::string_view name);

}  // namespace neurontrace
