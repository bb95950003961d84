// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace neurontrace {

// One file of the page.
struct WebAsset {
  std::string path;  // "/page.js"
  std::string content_type;
  std::string bytes;
  std::string gzip;  // the same, compressed for clients that accept it; empty: not compressed
};

// The files of the page: those that are built in, or those of a directory while one works on them.
// Constant, so that any thread may read it.
class WebAssets {
 public:
  // Returns what was built in. A build without esbuild has a page that says so.
  static WebAssets BuiltIn();
  // Reads the files of a directory, not those of its subdirectories. Fails with the system's error,
  // and with INVALID_ARGUMENT if index.html is missing.
  static absl::StatusOr<WebAssets> ReadDirectory(const std::string& directory);

  // Returns nullptr if there is no such file.
  const WebAsset* Find(std::string_view path) const;
  // Returns index.html.
  const WebAsset& page() const { return *Find("/index.html"); }

 private:
  std::vector<WebAsset> files_;
};

}  // namespace neurontrace
