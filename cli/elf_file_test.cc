// SPDX-License-Identifier: Apache-2.0
#include "cli/elf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/elf_test_support.h"
#include "cli/fake_host_view.h"

namespace neurontrace::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kLoader[] = "/lib64/ld-linux-x86-64.so.2";

TEST(ElfFile, ReadsLibraryDescriptions) {
  FakeHostView host;
  host.PutFile("/lib.so", FakeElf{.interpreter = "",
                                  .symbols = {"nrt_init", "nrt_close"},
                                  .versions = {"GLIBC_2.9", "GLIBC_2.34", "GCC_3.0"}}
                              .Bytes());
  const auto elf = ReadElf(host, "/lib.so");
  ASSERT_TRUE(elf.ok()) << elf.status();
  EXPECT_THAT(elf->defined, ElementsAre("nrt_init", "nrt_close"));
  EXPECT_TRUE(elf->Defines("nrt_close"));
  EXPECT_FALSE(elf->Defines("nrt_clos"));
  EXPECT_EQ(elf->HighestGlibcMinor(), 34);
  EXPECT_TRUE(elf->IsOfThisMachine());
  EXPECT_EQ(elf->interpreter, "");
}

TEST(ElfFile, KnowsProgramsAndOtherMachines) {
  FakeHostView host;
  host.PutFile("/a", FakeElf{.interpreter = kLoader}.Bytes());
  host.PutFile("/b", FakeElf{.machine = EM_PPC64}.Bytes());
  EXPECT_EQ(ReadElf(host, "/a")->interpreter, kLoader);
  EXPECT_EQ(ReadElf(host, "/a")->HighestGlibcMinor(), -1);
  EXPECT_FALSE(ReadElf(host, "/b")->IsOfThisMachine());
}

TEST(ElfFile, ReadsAConstant) {
  FakeHostView host;
  host.PutFile("/tap.so", FakeElf{.version_constant = "1.2.3"}.Bytes());
  EXPECT_EQ(*ReadElfText(host, "/tap.so", "neurontrace_tap_version"), "1.2.3");
  EXPECT_FALSE(ReadElfText(host, "/tap.so", "other").ok());
}

TEST(ElfFile, ReadsRealOnes) {
  SystemHostView host;
  const auto own = ReadElf(host, "/proc/self/exe");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_TRUE(own->IsOfThisMachine());
  EXPECT_THAT(own->interpreter, HasSubstr("ld-linux"));
  EXPECT_GE(own->HighestGlibcMinor(), 17);
  EXPECT_LE(own->HighestGlibcMinor(), MinorOfGlibc(host.glibc()));
}

TEST(ElfFile, SurvivesEveryTruncationAndFlippedByte) {
  FakeHostView host;
  const std::string whole =
      FakeElf{.interpreter = kLoader, .symbols = {"nrt_init"}, .versions = {"GLIBC_2.34"}}.Bytes();
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    host.PutFile("/x", whole.substr(0, bytes));
    EXPECT_FALSE(ReadElf(host, "/x").ok()) << bytes;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      host.PutFile("/x", damaged);
      (void)ReadElf(host, "/x");  // some error or other facts, and no crash
    }
  }
  EXPECT_EQ(ReadElf(host, "/none").status().code(), absl::StatusCode::kNotFound);
}

// 100,000 symbols name the ends of one string of 200 kB, which are 10 GB.
TEST(ElfFile, NamesAreNoMoreThanATableHolds) {
  FakeHostView host;
  std::string bytes = FakeElf{.symbols = std::vector<std::string>(100'000, "x")}.Bytes();
  const size_t at = bytes.find(std::string("\0x\0x\0", 5));
  ASSERT_NE(at, std::string::npos);
  for (size_t i = at; bytes[i + 1] == 'x'; i += 2) bytes[i] = 'x';  // one string without an end
  host.PutFile("/x", bytes);
  EXPECT_THAT(ReadElf(host, "/x").status().message(), HasSubstr("its string table is too large"));
}

TEST(ElfFile, VersionsOfTheCLibrary) {
  EXPECT_EQ(MinorOfGlibc("2.36"), 36);
  EXPECT_EQ(MinorOfGlibc("2.2.5"), 2);
  EXPECT_EQ(MinorOfGlibc("musl"), -1);
  EXPECT_EQ(MinorOfGlibc(""), -1);
}

}  // namespace
}  // namespace neurontrace::cli
