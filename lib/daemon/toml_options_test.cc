// SPDX-License-Identifier: Apache-2.0
// Goal: a file of options is TOML, with TOML's quotes, comments and numbers; what is wrong with it
// is said with its file and line.

#include "lib/daemon/config_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace neurontrace {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TomlOptionsTest : public ::testing::Test {
 protected:
  ~TomlOptionsTest() override { std::remove(path_.c_str()); }

  // What is wrong; empty: nothing.
  std::string Read(const std::string& text, const std::string& arguments = "") {
    CLI::App app;
    given_ = {};
    app.add_option("--name", given_.name);
    app.add_option("--number", given_.number)->check(CLI::Range(-10, 10));
    app.add_option("--size", given_.size)->transform(ByteSize());
    app.add_option("--root", given_.roots)->allow_extra_args(false);
    app.add_option("--rule", given_.rules)->allow_extra_args(false)->type_name("TABLE");
    app.add_flag("--samples,!--no-samples", given_.samples);
    bool validate = false;
    AddConfigOptions(app, validate, "File");
    std::ofstream(path_) << text;
    try {
      app.parse("--config " + path_ + " " + arguments);
    } catch (const CLI::ParseError& error) {
      return ToString(error);
    }
    return "";
  }

  struct Given {
    std::string name;
    int number = 0;
    uint64_t size = 0;
    std::vector<std::string> roots;
    std::vector<std::string> rules;
    bool samples = true;
  };

  const std::string path_ =
      ::testing::TempDir() + "/nt_toml_options_test_" + std::to_string(getpid()) + ".toml";
  Given given_;
};

TEST_F(TomlOptionsTest, QuotesCommentsAndNumbersAreTomls) {
  EXPECT_EQ(Read("# first\n"
                 "name = \"a # b\"  # a comment\n"
                 "number = -5\n"
                 "size = \"2GB\"\n"
                 "root = [\"/a, b\", '/c\\d']\n"
                 "samples = false\n"),
            "");
  EXPECT_EQ(given_.name, "a # b");
  EXPECT_EQ(given_.number, -5);
  EXPECT_EQ(given_.size, 2'000'000'000u);
  EXPECT_THAT(given_.roots, ElementsAre("/a, b", "/c\\d"));
  EXPECT_FALSE(given_.samples);
  EXPECT_EQ(Read("name = \"tab\\tquote\\\" \\u00e9\"\nno-samples = true\nroot = \"/one\"\n"), "");
  EXPECT_EQ(given_.name, "tab\tquote\" \u00e9");
  EXPECT_FALSE(given_.samples);
  EXPECT_THAT(given_.roots, ElementsAre("/one"));
  EXPECT_EQ(Read("name = '''\nlines'''\nnumber = 0x0a\nroot = []\r\n"), "");
  EXPECT_EQ(given_.name, "lines");
  EXPECT_EQ(given_.number, 10);
}

TEST_F(TomlOptionsTest, AnOptionMayTakeTables) {
  EXPECT_EQ(Read("[[rule]]\nname = \"a\"\nto = [\"b\", \"c\"]\n[[rule]]\nname = \"d\"\n"), "");
  EXPECT_THAT(given_.rules,
              ElementsAre(R"({"name" = "a", "to" = ["b", "c"]})", R"({"name" = "d"})"));
}

TEST_F(TomlOptionsTest, TheCommandLineCountsBefore) {
  EXPECT_EQ(Read("name = \"file\"\nnumber = 3\n", "--name typed"), "");
  EXPECT_EQ(given_.name, "typed");
  EXPECT_EQ(given_.number, 3);
}

TEST_F(TomlOptionsTest, ReportsErrorLine) {
  const auto at = [this](int line) { return path_ + ":" + std::to_string(line) + ":"; };
  EXPECT_THAT(Read("\n\nname = unquoted\n"), StartsWith(at(3)));
  EXPECT_THAT(Read("name = \"a\"\nname = \"b\"\n"), StartsWith(at(2)));
  EXPECT_THAT(Read("name = \"not closed\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("name\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("name = \"a\" b\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("name = \"\xff\"\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("# x\nnumber = 11\n"), StartsWith(at(2)));
  EXPECT_THAT(Read("number = \"x\"\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("number = 1.5\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("number = [1, 2]\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("number = 2026-01-01\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("size = \"5XB\"\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("samples = \"yes\"\n"), HasSubstr("true or false"));
  EXPECT_THAT(Read("root = [[\"a\"]]\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("name = {a = 1}\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("\n[agent]\nname = \"a\"\n"),
              StartsWith(at(2) + "2: unexpected section [agent]: options must be at top level"));
  EXPECT_THAT(Read("agent.name = \"a\"\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("nmae = \"a\"\n"), StartsWith(at(1) + "1: nmae is not an option; see --help"));
  EXPECT_THAT(
      Read("# x\nname = 127.0.0.1:9500\n"),
      AllOf(StartsWith(at(2)), HasSubstr("strings must be quoted: name = \"127.0.0.1:9500\"")));
  EXPECT_THAT(Read("name = [a\n"), Not(HasSubstr("must be quoted")));
  EXPECT_THAT(Read("config = \"a\"\n"), StartsWith(at(1)));
  EXPECT_THAT(Read("validate-config = true\n"), HasSubstr("cannot be set in a configuration file"));
}

TEST_F(TomlOptionsTest, AFileThatCannotBeReadOrIsEmptyIsRefusedByItsName) {
  EXPECT_THAT(Read(""), StartsWith(path_ + ": the file is empty"));
  EXPECT_THAT(Read(" \n"), StartsWith(path_ + ": the file is empty"));
  EXPECT_EQ(Read("# no option yet\n"), "");
  const auto problem = [this](const char* target) {
    std::remove(path_.c_str());
    std::filesystem::create_symlink(target, path_);
    return Read("");
  };
  EXPECT_THAT(problem("/proc/self/mem"), StartsWith(path_ + " cannot be read: Input/output error"));
  EXPECT_THAT(problem("/proc"), HasSubstr(path_ + " is a directory"));
  EXPECT_THAT(problem("/dev/null"), HasSubstr(path_ + " is not a regular file"));
  EXPECT_THAT(problem("/proc/none"), HasSubstr(path_ + ": No such file"));
}

}  // namespace
}  // namespace neurontrace
