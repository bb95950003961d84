// SPDX-License-Identifier: Apache-2.0
// Goal: it is known before anything is recorded whether an output can be written, and no link leads
// where the kernel would not follow it.
#include "cli/output_place.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "lib/base/unique_fd.h"

namespace neurontrace::cli {
namespace {

using ::testing::HasSubstr;
using Kind = OutputPlace::Kind;

class OutputPlaceTest : public testing::Test {
 protected:
  OutputPlaceTest() {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~OutputPlaceTest() override { std::filesystem::remove_all(root_); }

  std::string At(const std::string& name) const { return root_ + "/" + name; }
  std::string Problem(const std::string& path, bool is_directory = false) const {
    return std::string(CheckOutputPlace(path, is_directory).message());
  }
  static Kind KindOf(const std::string& path) {
    const auto place = FindOutputPlace(path);
    EXPECT_TRUE(place.ok()) << place.status();
    return place.ok() ? place->kind : Kind::kNew;
  }

  const std::string root_ = testing::TempDir() + "/nt_output_place_" + std::to_string(getpid());
};

TEST_F(OutputPlaceTest, DetectsDirectlyWrittenOutputs) {
  EXPECT_EQ(KindOf(At("absent")), Kind::kNew);
  std::ofstream(At("file")) << "x";
  EXPECT_EQ(KindOf(At("file")), Kind::kNew);
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  EXPECT_EQ(KindOf(At("pipe")), Kind::kStream);
  EXPECT_EQ(KindOf("/dev/null"), Kind::kStream);
  std::filesystem::create_symlink("/dev/null", At("to_null"));
  EXPECT_EQ(KindOf(At("to_null")), Kind::kStream);
  EXPECT_FALSE(LeadsToFile(At("to_null")));
  EXPECT_TRUE(LeadsToFile(At("absent")));
  for (const std::string path :
       {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1"}) {
    EXPECT_TRUE(IsStandardOutput(path)) << path;
  }
  std::filesystem::create_symlink("/dev/stdout", At("to_stdout"));
  EXPECT_TRUE(IsStandardOutput(At("to_stdout")));
  EXPECT_FALSE(IsStandardOutput("/dev/stderr"));
  EXPECT_EQ(KindOf("/dev/stderr"), Kind::kDescriptor);
}

TEST_F(OutputPlaceTest, DetectsUnwritableOutputBeforehand) {
  EXPECT_EQ(Problem(At("file")), "");
  EXPECT_EQ(Problem(At("directory"), true), "");
  EXPECT_EQ(Problem(At("directory/"), true), "");
  EXPECT_TRUE(std::filesystem::is_empty(root_)) << "a check leaves nothing";
  EXPECT_THAT(Problem(At("nodir/x")), HasSubstr(At("nodir") + ": No such file or directory"));
  EXPECT_THAT(Problem(At("nodir/x"), true), HasSubstr("No such file or directory"));
  EXPECT_THAT(Problem(At(std::string(253, 'n'))),
              HasSubstr("its name is too long: the file is first written to"));
  std::ofstream(At("file")) << "x";
  EXPECT_THAT(Problem(At("file/x")), HasSubstr("Not a directory"));
  EXPECT_THAT(Problem(At("file"), true), HasSubstr("not an empty directory"));
  EXPECT_THAT(Problem(root_), HasSubstr("is a directory"));
  EXPECT_THAT(Problem(root_, true), HasSubstr("not an empty directory"));
  EXPECT_THAT(Problem("/dev/null", true), HasSubstr("needs a directory"));
  EXPECT_THAT(Problem("/proc/x"), HasSubstr("cannot write to /proc/x"));
  EXPECT_THAT(Problem("/proc", true), HasSubstr("not an empty directory"));
  std::filesystem::create_symlink("b", At("a"));
  std::filesystem::create_symlink("a", At("b"));
  EXPECT_THAT(Problem(At("a")), HasSubstr("Too many levels of symbolic links"));
  EXPECT_THAT(Problem("/dev/fd/999"), HasSubstr("descriptor 999 is not open"));
  EXPECT_THAT(Problem("/proc/self/mem"), HasSubstr("it is a kernel file"));
  std::filesystem::create_symlink("nodir/x", At("dangling"));
  EXPECT_NE(Problem(At("dangling")), "");
}

TEST_F(OutputPlaceTest, ASocketTakesNoFile) {
  const UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, At("s").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(Problem(At("s")), HasSubstr("it is a socket"));
}

TEST_F(OutputPlaceTest, ADescriptorHasToBeOpenForWriting) {
  std::ofstream(At("file")) << "x";
  const UniqueFd reader(open(At("file").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(Problem("/dev/fd/" + std::to_string(reader.get())),
              HasSubstr("not open for writing"));
}

// A rename in its place would fail when everything is recorded.
TEST_F(OutputPlaceTest, DetectsUnreplaceableOutputBeforehand) {
  if (geteuid() != 0) GTEST_SKIP() << "only root changes owners";
  std::ofstream(At("file")) << "x";
  std::filesystem::permissions(root_, std::filesystem::perms(01777));
  ASSERT_EQ(chown(At("file").c_str(), 12345, 12345), 0);
  ASSERT_EQ(seteuid(12346), 0);
  const std::string problem = Problem(At("file"));
  const std::string new_one = Problem(At("new"));
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_THAT(problem, HasSubstr("it belongs to user 12345"));
  EXPECT_EQ(new_one, "");
}

// As fs.protected_symlinks has it.
TEST_F(OutputPlaceTest, ALinkOfAnotherUserInAPublicDirectoryIsNotFollowed) {
  if (geteuid() != 0) GTEST_SKIP() << "only root makes links of others";
  std::filesystem::permissions(root_, std::filesystem::perms(01777));
  std::ofstream(At("victim")) << "x";
  std::filesystem::create_symlink(At("victim"), At("link"));
  EXPECT_EQ(Problem(At("link")), "") << "one's own is";
  ASSERT_EQ(lchown(At("link").c_str(), 12345, 12345), 0);
  EXPECT_THAT(Problem(At("link")), HasSubstr("is a symbolic link of user 12345"));
}

}  // namespace
}  // namespace neurontrace::cli
