// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace neurontrace {

// Where an export's bytes go, in order. Abstract because that is a file in one place and a network
// stream in another. One thread at a time.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  // Takes all of `bytes` before it returns; a slow receiver makes it block, which is what holds the
  // export back. An error (the receiver is gone, the disk is full) ends the export.
  virtual absl::Status Write(std::string_view bytes) = 0;
};

// One file of an export. What is not closed is not whole: who receives it throws it away.
class OutputFile : public ByteSink {
 public:
  // All bytes are there. Called once, at the end; nothing is written after it.
  virtual absl::Status Close() = 0;
};

// A file that knows how many bytes were written to it. One thread at a time.
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
