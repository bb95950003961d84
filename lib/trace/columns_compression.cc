// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/columns_compression.h"

#include <zstd.h>

#include <cassert>
#include <memory>

#include "lib/base/status.h"
#include "lib/trace/limits.h"

namespace neurontrace {
namespace {

// Columns are compact already; level 1 still halves them (docs/developer/benchmarks.md).
constexpr int kLevel = 1;

// Frees either kind of context.
struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

std::string CompressColumns(std::string_view columns) {
  if (columns.empty()) return {};
  // Contexts take hundreds of KiB and are expensive to create; one a thread serves all streams.
  static thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  static thread_local std::string buffer;
  if (buffer.size() < ZSTD_compressBound(columns.size())) {
    buffer.resize(ZSTD_compressBound(columns.size()));
  }
  const size_t size = ZSTD_compressCCtx(context.get(), buffer.data(), buffer.size(), columns.data(),
                                        columns.size(), kLevel);
  assert(!ZSTD_isError(size));  // the buffer has the size that zstd asks for
  return buffer.substr(0, size);
}

// Every check of the frame comes before the decompression, whose output is then known in size.
absl::Status UncompressColumns(std::string_view compressed, uint32_t columns_bytes,
                               std::string& out) {
  out.clear();
  if (compressed.size() > limits::kChunkBytesMax) {
    return InvalidArgument("columns: {} compressed bytes exceed the limit of {}", compressed.size(),
                           limits::kChunkBytesMax);
  }
  if (columns_bytes > limits::kChunkColumnsBytesMax) {
    return InvalidArgument("columns: {} bytes exceed the limit of {}", columns_bytes,
                           limits::kChunkColumnsBytesMax);
  }
  if (columns_bytes == 0) {
    if (compressed.empty()) return absl::OkStatus();
    return InvalidArgument("columns: {} compressed bytes where none are expected",
                           compressed.size());
  }
  // The size in the frame is compared before memory is allocated: a small frame may claim
  // gigabytes.
  const unsigned long long content = ZSTD_getFrameContentSize(compressed.data(), compressed.size());
  if (content != columns_bytes) {
    return InvalidArgument("columns: not a zstd frame with a content size of {} bytes",
                           columns_bytes);
  }
  // ZSTD_decompressDCtx also accepts further frames, such as skippable ones with any content.
  if (ZSTD_findFrameCompressedSize(compressed.data(), compressed.size()) != compressed.size()) {
    return InvalidArgument("columns: {} compressed bytes are not one whole zstd frame",
                           compressed.size());
  }
  static thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  out.resize(columns_bytes);
  assert(out.size() == content);
  const size_t size = ZSTD_decompressDCtx(context.get(), out.data(), out.size(), compressed.data(),
                                          compressed.size());
  if (ZSTD_isError(size) || size != columns_bytes) {
    out.clear();
    return InvalidArgument("columns: damaged zstd frame: {}",
                           ZSTD_isError(size) ? ZSTD_getErrorName(size) : "short");
  }
  return absl::OkStatus();
}

}  // namespace neurontrace
