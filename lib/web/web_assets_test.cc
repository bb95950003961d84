// SPDX-License-Identifier: Apache-2.0
// Goal: the page has the files of the build or of the directory, each with its type, and nothing
// else of the disk.
#include "lib/web/web_assets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lib/base/temporary_directory.h"
#include "lib/trace/web_limits.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class WebAssetsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_.path() + "/" + name, std::ios::binary) << text;
  }
  TemporaryDirectory directory_;
};

TEST_F(WebAssetsTest, BuiltInPageHasTheSameContentInBothForms) {
  const WebAssets assets = WebAssets::BuiltIn();
  EXPECT_THAT(assets.page().bytes, HasSubstr("<title>neurontrace"));
  const WebAsset* const script = assets.Find("/page.js");
  if (script == nullptr) GTEST_SKIP() << "built without the page";
  EXPECT_EQ(script->content_type, "text/javascript; charset=utf-8");
  EXPECT_THAT(script->gzip, StartsWith("\x1f\x8b"));
  // The last four bytes of a gzip file are its length (RFC 1952, 2.3.1).
  uint32_t length = 0;
  for (size_t i = 1; i <= 4; ++i) {
    length = length << 8 | static_cast<unsigned char>(script->gzip[script->gzip.size() - i]);
  }
  EXPECT_EQ(script->bytes.size(), length);
}

TEST_F(WebAssetsTest, ReadsTheFilesOfADirectoryWithTheirTypes) {
  Write("index.html", "<p>");
  Write("page.js", "1");
  Write("style.css", "p {}");
  Write("logo.svg", "<svg/>");
  Write("page.js.gz", "compressed");
  Write("font.woff2", std::string("\0\xff", 2));
  const auto assets = WebAssets::ReadDirectory(directory_.path());
  ASSERT_TRUE(assets.ok()) << assets.status();
  EXPECT_EQ(assets->page().bytes, "<p>");
  EXPECT_EQ(assets->page().content_type, "text/html; charset=utf-8");
  EXPECT_TRUE(assets->page().gzip.empty());
  EXPECT_EQ(assets->Find("/page.js")->content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(assets->Find("/style.css")->content_type, "text/css; charset=utf-8");
  EXPECT_EQ(assets->Find("/logo.svg")->content_type, "image/svg+xml");
  EXPECT_EQ(assets->Find("/font.woff2")->content_type, "application/octet-stream");
  EXPECT_EQ(assets->Find("/font.woff2")->bytes, std::string("\0\xff", 2));
  EXPECT_EQ(assets->Find("/page.js.gz"), nullptr) << "the server compresses by itself";
}

TEST_F(WebAssetsTest, FindsNothingOutsideOfTheDirectory) {
  Write("index.html", "<p>");
  std::filesystem::create_directory(directory_.path() + "/inner");
  Write("inner/secret.js", "1");
  std::filesystem::create_symlink("nowhere", directory_.path() + "/dangling.js");
  const auto assets = WebAssets::ReadDirectory(directory_.path());
  ASSERT_TRUE(assets.ok()) << assets.status();
  for (const char* const path : {"/inner/secret.js", "/inner", "/dangling.js", "/../index.html",
                                 "index.html", "/", "", "/index.html/"}) {
    EXPECT_EQ(assets->Find(path), nullptr) << path;
  }
}

TEST_F(WebAssetsTest, ErrorsNameThePlaceAndTheFix) {
  const auto empty = WebAssets::ReadDirectory(directory_.path());
  EXPECT_EQ(empty.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(empty.status().message()), HasSubstr("web/build.sh"));
  const auto missing = WebAssets::ReadDirectory(directory_.path() + "/nowhere");
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/nowhere: "));
}

TEST_F(WebAssetsTest, RefusesALargerFileThanAPageHas) {
  Write("index.html", "<p>");
  Write("page.js", "");
  std::filesystem::resize_file(directory_.path() + "/page.js", limits::kWebAssetBytesMax);
  EXPECT_TRUE(WebAssets::ReadDirectory(directory_.path()).ok());
  std::filesystem::resize_file(directory_.path() + "/page.js", limits::kWebAssetBytesMax + 1);
  const auto refused = WebAssets::ReadDirectory(directory_.path());
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("page.js"));
}

}  // namespace
}  // namespace neurontrace
