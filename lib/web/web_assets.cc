// SPDX-License-Identifier: Apache-2.0
#include "lib/web/web_assets.h"

#include <zlib.h>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <system_error>

#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/trace/web_limits.h"
#include "lib/web/built_in_assets.h"

namespace neurontrace {
namespace {

std::string ContentTypeOf(std::string_view path) {
  if (path.ends_with(".html")) return "text/html; charset=utf-8";
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  if (path.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

// Returns the content of a gzip file that the build made, for clients without gzip.
std::string Inflate(std::string_view gzip) {
  constexpr int kGzipWindowBits = 15 + 16;
  constexpr size_t kPieceBytes = 64u << 10;
  z_stream zlib{};
  [[maybe_unused]] int result = inflateInit2(&zlib, kGzipWindowBits);
  assert(result == Z_OK);
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  zlib.avail_in = static_cast<uInt>(gzip.size());
  std::string out;
  do {
    const size_t size = out.size();
    out.resize(size + kPieceBytes);
    zlib.next_out = reinterpret_cast<Bytef*>(out.data() + size);
    zlib.avail_out = kPieceBytes;
    result = inflate(&zlib, Z_NO_FLUSH);
  } while (result == Z_OK);
  assert(result == Z_STREAM_END);
  out.resize(zlib.total_out);
  inflateEnd(&zlib);
  return out;
}

}  // namespace

WebAssets WebAssets::BuiltIn() {
  WebAssets assets;
  for (const BuiltInAsset& file : BuiltInAssets()) {
    assets.files_.push_back({.path = std::string(file.path),
                             .content_type = ContentTypeOf(file.path),
                             .bytes = Inflate(file.gzip),
                             .gzip = std::string(file.gzip)});
  }
  if (assets.files_.empty()) {
    assets.files_.push_back(
        {.path = "/index.html",
         .content_type = ContentTypeOf(".html"),
         .bytes = "<!doctype html><title>neurontrace</title><p>This program was built without the "
                  "page: esbuild was not installed. Install it, build again, or name a built page "
                  "with --web-assets.\n"});
  }
  return assets;
}

absl::StatusOr<WebAssets> WebAssets::ReadDirectory(const std::string& directory) {
  WebAssets assets;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unknown;  // a link that leads nowhere, or a file that was removed just now
    if (!it->is_regular_file(unknown) || it->path().extension() == ".gz") continue;
    ASSIGN_OR_RETURN(std::string bytes,
                     ReadSmallFile(it->path().string(), limits::kWebAssetBytesMax));
    const std::string path = "/" + it->path().filename().string();
    assets.files_.push_back(
        {.path = path, .content_type = ContentTypeOf(path), .bytes = std::move(bytes)});
  }
  if (error) return Unavailable("{}: {}", directory, error.message());
  if (assets.Find("/index.html") == nullptr) {
    return InvalidArgument("{} has no index.html; web/build.sh DIRECTORY builds the page",
                           directory);
  }
  return assets;
}

const WebAsset* WebAssets::Find(std::string_view path) const {
  const auto found = std::ranges::find(files_, path, &WebAsset::path);
  return found == files_.end() ? nullptr : &*found;
}

}  // namespace neurontrace
