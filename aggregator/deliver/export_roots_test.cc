// SPDX-License-Identifier: Apache-2.0
// Goal: a destination is below a root by its parts, whatever it is written like.
#include "aggregator/deliver/export_roots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(ExportRootsTest, NamesDestinationsBelowARoot) {
  const ExportRoots roots({{"/data/exports/"}, {"/fsx"}});
  EXPECT_EQ(roots.Check("/data/exports").value_or(""), "/data/exports");
  EXPECT_EQ(roots.Check("//data/./exports//run 7/").value_or(""), "/data/exports/run 7");
  EXPECT_EQ(roots.Check("/fsx/a/b").value_or(""), "/fsx/a/b");
}

TEST(ExportRootsTest, RejectsPathsOutsideRoots) {
  const ExportRoots roots({{"/data/exports"}});
  for (const char* outside : {"/data", "/data/exports2", "/", "/etc"}) {
    const auto status = roots.Check(outside).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << outside;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("/data/exports"));
  }
  for (const char* nonsense : {"data/exports", "", "/data/exports/../x", "/data/exports/a\nb"}) {
    EXPECT_EQ(roots.Check(nonsense).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(std::string(ExportRoots({}).Check("/x").status().message()),
              ::testing::HasSubstr("--export-root"));
}

TEST(ExportRootsTest, ABucketIsARootLikeADirectory) {
  const ExportRoots roots({{"s3://traces/prod/"}, {"/fsx"}});
  EXPECT_EQ(roots.Check("s3://traces/prod//a").value_or(""), "s3://traces/prod/a");
  for (const char* outside : {"s3://traces", "s3://traces/production", "s3://other/prod"}) {
    EXPECT_EQ(roots.Check(outside).status().code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(roots.Check("s3://").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(roots.Check("s3://traces/prod/../x").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ExportRootsTest, RejectsInvalidRoot) {
  EXPECT_EQ(CheckExportRoot("/data"), "");
  EXPECT_NE(CheckExportRoot("/"), "");
  EXPECT_NE(CheckExportRoot("data"), "");
  EXPECT_NE(CheckExportRoot("/data/../etc"), "");
}

}  // namespace
}  // namespace neurontrace
