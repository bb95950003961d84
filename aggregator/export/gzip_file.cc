// SPDX-License-Identifier: Apache-2.0
#include "aggregator/export/gzip_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <climits>
#include <string>
#include <utility>

#include "lib/base/status.h"

namespace neurontrace {
namespace {

constexpr int kGzipWindowBits = 15 + 16;  // the largest window; 16: with gzip's header
constexpr int kGzipMemoryLevel = 8;       // zlib's default
// Traces are repetitive: higher levels take twice the time for a tenth of the size.
constexpr int kGzipLevel = 3;

// A stream of zlib in front of a file. Memory is that of zlib (about 256 KiB) and of one buffer,
// whatever the file's size. A file that was not closed lacks gzip's trailer, which readers report.
class GzipFile : public OutputFile {
 public:
  explicit GzipFile(std::unique_ptr<OutputFile> file) : file_(std::move(file)) {}
  ~GzipFile() override { deflateEnd(&stream_); }
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // Prepares zlib. Called once, before Write. Returns false if zlib has no memory.
  bool Begin() {
    return deflateInit2(&stream_, kGzipLevel, Z_DEFLATED, kGzipWindowBits, kGzipMemoryLevel,
                        Z_DEFAULT_STRATEGY) == Z_OK;
  }

  absl::Status Write(std::string_view bytes) override {
    while (!bytes.empty()) {
      // avail_in has 32 bits, so that larger texts are passed in pieces.
      const size_t size = std::min(bytes.size(), size_t{UINT_MAX});
      RETURN_IF_ERROR(Deflate(bytes.substr(0, size), Z_NO_FLUSH));
      bytes.remove_prefix(size);
    }
    return absl::OkStatus();
  }

  absl::Status Close() override {
    RETURN_IF_ERROR(Deflate({}, Z_FINISH));
    return file_->Close();
  }

 private:
  // Compresses all of `bytes`. With Z_FINISH it also writes the trailer, after which only Close of
  // the file may follow.
  absl::Status Deflate(std::string_view bytes, int flush) {
    // zlib only reads its input; the type of next_in lacks const for historical reasons.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      // Its result needs no check: with valid arguments the only possible failure is a lack of
      // progress, which the loop handles.
      deflate(&stream_, flush);
      const size_t made = out_.size() - stream_.avail_out;
      if (made != 0) RETURN_IF_ERROR(file_->Write({out_.data(), made}));
    } while (stream_.avail_out == 0);
    return absl::OkStatus();
  }

  const std::unique_ptr<OutputFile> file_;
  z_stream stream_{};
  std::array<char, 64u << 10> out_{};
};

}  // namespace

absl::StatusOr<std::unique_ptr<OutputFile>> MakeGzipFile(std::unique_ptr<OutputFile> file) {
  auto gzip = std::make_unique<GzipFile>(std::move(file));
  if (!gzip->Begin()) return absl::InternalError("export: gzip cannot allocate memory");
  return gzip;
}

absl::StatusOr<std::unique_ptr<OutputFile>> OpenCompressed(OutputFiles& files,
                                                           std::string_view name,
                                                           ExportCompression compression) {
  if (compression == ExportCompression::kNone) return files.Open(name);
  if (compression == ExportCompression::kPackets) {
    return InvalidArgument("only pftrace supports the compression of packets; use gzip for {}",
                           name);
  }
  ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, files.Open(std::string(name) + ".gz"));
  return MakeGzipFile(std::move(file));
}

}  // namespace neurontrace
