// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace {

// Receives an export's bytes in order. Abstract because they go to a file in one place and to a
// network stream in another. Used by one thread at a time.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Consumes all of `bytes` before it returns. A slow receiver makes it block, which holds the
  // export back. An error (the receiver is gone, the disk is full) ends the export.
  virtual absl::Status Write(std::string_view bytes) = 0;
};

// One file of an export. A file that was not closed is incomplete, and its receiver discards it.
class OutputFile : public ByteSink {
 public:
  // Declares the file complete. Called once, after the last Write.
  virtual absl::Status Close() = 0;
};

// A file that counts the bytes written to it. Used by one thread at a time.
class CountedFile : public OutputFile {
 public:
  explicit CountedFile(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}
  absl::Status Write(std::string_view bytes) override {
    bytes_ += bytes.size();
    return file_->Write(bytes);
  }
  absl::Status Close() override { return file_->Close(); }
  uint64_t bytes() const { return bytes_; }

 private:
  const std::unique_ptr<OutputFile> file_;
  uint64_t bytes_ = 0;
};

// The files that an export makes. Abstract because they go to a network stream, a directory or a
// bucket. Used by one thread at a time, together with the files that it opens, which it must
// outlive.
class OutputFiles {
 public:
  virtual ~OutputFiles() = default;
  // Opens a file; several can be open at once. `name` is a relative path as IsOutputName accepts
  // it, not used before in this export. Fails with INVALID_ARGUMENT for any other name, and with
  // RESOURCE_EXHAUSTED beyond limits::kExportFilesMax.
  virtual absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view name) = 0;
};

// Returns whether the name is a relative path whose parts consist of letters, digits and "._-=+@",
// are not "." or "..", and have at most limits::kExportNameBytesMax bytes together. Such a file
// stays below its directory on any file system.
bool IsOutputName(std::string_view name);

}  // namespace neurontrace
