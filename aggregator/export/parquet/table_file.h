// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "aggregator/export/output_files.h"

namespace neurontrace {

// The bytes of one Parquet file on their way to an export's file: the first of them wait until
// there are `head_bytes_max`, or until it is told its name. One thread at a time.
class TableFile : public arrow::io::OutputStream {
 public:
  // `name_if_long` is the file's where it is longer than the head.
  TableFile(OutputFiles& files, std::string name_if_long, size_t head_bytes_max,
            uint64_t& bytes_written)
      : files_(files),
        name_if_long_(std::move(name_if_long)),
        head_bytes_max_(head_bytes_max),
        bytes_written_(bytes_written) {}

  arrow::Status Write(const void* data, int64_t bytes) override;
  arrow::Status Close() override;  // what Arrow calls; the file stays open
  arrow::Result<int64_t> Tell() const override { return position_; }
  bool closed() const override { return is_closed_; }
  using arrow::io::OutputStream::Write;

  bool has_name() const { return file_ != nullptr; }
  // Opens the file where that was not done, and closes it.
  absl::Status Finish(const std::string& name);
  // What the files answered: it is more than Arrow can say.
  const absl::Status& status() const { return written_; }

 private:
  absl::Status Open(const std::string& name);

  OutputFiles& files_;
  const std::string name_if_long_;
  const size_t head_bytes_max_;
  uint64_t& bytes_written_;
  std::unique_ptr<OutputFile> file_;
  std::string head_;
  int64_t position_ = 0;
  bool is_closed_ = false;
  absl::Status written_;
};

}  // namespace neurontrace
