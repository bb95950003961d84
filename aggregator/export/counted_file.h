// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "aggregator/export/output_files.h"

namespace neurontrace {

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

}  // namespace neurontrace
