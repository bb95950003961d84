// SPDX-License-Identifier: Apache-2.0
#include "aggregator/access/access_policy_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "lib/base/temporary_directory.h"

namespace neurontrace {
namespace {

using ::testing::HasSubstr;

class AccessPolicyStoreTest : public ::testing::Test {
 protected:
  void Write(const std::string& role) {
    std::ofstream(directory_ / "new") << "[a]\ncertificate = \"cn:a\"\nrole = \"" << role << "\"\n";
    std::filesystem::rename(directory_ / "new", path_);
  }
  static std::optional<Caller> Who(const AccessPolicyStore& book) {
    return book.rules()->ByCertificate({"cn:a"});
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_ / "access";
  SystemClock clock_;
};

TEST_F(AccessPolicyStoreTest, InvalidFileAtStartIsError) {
  AccessPolicyStore book(path_, clock_);
  EXPECT_TRUE(absl::IsNotFound(book.Load()));
  Write("nothing");
  EXPECT_THAT(std::string(book.Load().message()),
              HasSubstr("access:3:1: [a]: role = \"nothing\": role must be one of"));
}

TEST_F(AccessPolicyStoreTest, ReloadsValidFileOnly) {
  Write("viewer");
  AccessPolicyStore book(path_, clock_);
  ASSERT_TRUE(book.Load().ok());
  EXPECT_EQ(Who(book)->role, Role::kViewer);
  Write("operator");
  book.Poll(false);
  EXPECT_EQ(Who(book)->role, Role::kOperator);
  EXPECT_TRUE(book.is_good());
  Write("nothing");
  book.Poll(false);
  EXPECT_EQ(Who(book)->role, Role::kOperator);
  EXPECT_FALSE(book.is_good());
  std::filesystem::remove(path_);
  book.Poll(true);
  EXPECT_EQ(Who(book)->role, Role::kOperator);
  Write("admin");
  book.Poll(false);
  EXPECT_EQ(Who(book)->role, Role::kAdmin);
  EXPECT_TRUE(book.is_good());
}

// As an editor leaves it for a moment, or a full disk for good.
TEST_F(AccessPolicyStoreTest, FileWithoutRulesAllowsEveryone) {
  Write("viewer");
  AccessPolicyStore book(path_, clock_);
  ASSERT_TRUE(book.Load().ok());
  for (const char* const text : {"", "\n\n", "# no rule\n"}) {
    std::ofstream(path_, std::ios::trunc) << text;
    book.Poll(true);
    EXPECT_EQ(Who(book)->role, Role::kViewer) << text;
    EXPECT_FALSE(book.is_good());
    AccessPolicyStore at_start(path_, clock_);
    EXPECT_THAT(std::string(at_start.Load().message()), HasSubstr("has no rule"));
  }
}

TEST_F(AccessPolicyStoreTest, WithoutFileNothingIsReloaded) {
  AccessPolicyStore book("", clock_);
  ASSERT_TRUE(book.Load().ok());
  book.Poll(true);
  EXPECT_EQ(book.rules()->ByCertificate({"uri:neurontrace:agent"})->role, Role::kAgent);
}

}  // namespace
}  // namespace neurontrace
