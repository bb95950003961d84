// SPDX-License-Identifier: Apache-2.0
#include "lib/web/web_assets.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "lib/base/small_file.h"
#include "lib/base/status.h"
#include "lib/web/built_in_assets.h"

namespace neurontrace {
namespace {

// A file of the page while one works on it; the bundle has 100 kB.
constexpr size_t kAssetBytesMax = 16u << 20;

std::string ContentTypeOf(std::string_view path) {
  if (path.ends_with(".html")) return "text/html; charset=utf-8";
  if (path.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (path.ends_with(".css")) return "text/css; charset=utf-8";
  if (path.ends_with(".svg")) return "image/svg+xml";
  return "application/octet-stream";
}

}  // namespace

WebAssets WebAssets::BuiltIn() {
  WebAssets assets;
  for (const BuiltInAsset& file : BuiltInAssets()) {
    assets.files_.push_back({.path = std::string(file.path),
                             .content_type = ContentTypeOf(file.path),
                             .bytes = std::string(file.gzip),
                             .is_gzip = true});
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
    if (!it->is_regular_file() || it->path().extension() == ".gz") continue;
    ASSIGN_OR_RETURN(std::string bytes, ReadSmallFile(it->path().string(), kAssetBytesMax));
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
