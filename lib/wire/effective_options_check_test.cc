// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/effective_options_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

TEST(OptionTextsCheckTest, OnlyPathsMayBeAnyBytes) {
  const auto check = [](std::vector<std::string> arguments) {
    CLI::App app;
    std::string name, out, id;
    app.add_option("--name", name);
    app.add_option("-o,--out", out);
    CLI::App* const command = app.add_subcommand("export", "");
    command->add_option("ID", id);
    std::reverse(arguments.begin(), arguments.end());
    app.parse(arguments);
    return std::string(CheckEffectiveOptions(app, {"out"}).message());
  };
  EXPECT_EQ(check({"--name", "caf\u00e9", "--out", "/tmp/\xff", "export", "01JD"}), "");
  EXPECT_THAT(check({"--name", "caf\xe9"}), HasSubstr("--name 'caf?' is not UTF-8"));
  EXPECT_THAT(check({"--name", "\xed\xa0\x80"}), HasSubstr("--name")) << "half a surrogate";
  EXPECT_THAT(check({"export", "01\xff"}), HasSubstr("ID '01?' is not UTF-8"));
}

}  // namespace
}  // namespace neurontrace
