// SPDX-License-Identifier: Apache-2.0
#include "cli/folded_lines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace neurontrace::cli {
namespace {

std::string Folded(const std::vector<std::string>& lines, bool fold = true) {
  FoldedLines folded({"i-0a1", "i-0b2", "llama"}, fold);
  for (const std::string& line : lines) folded.Add(line);
  return folded.Format();
}

TEST(FoldedLinesTest, FoldsLinesDifferingInNumbersAndNames) {
  EXPECT_EQ(Folded({"i-0a1 pid 1 (ranks 0-3): idle", "a word", "i-0b2 pid 17 (ranks 4-7, 9): idle",
                    "i-0a1 pid 3 (ranks 8): idle"}),
            "i-0a1 pid 1 (ranks 0-3): idle (and 2 more like this)\na word\n");
  EXPECT_EQ(Folded({"RANK=1 of 8", "RANK=2 of 8", "RANK=3 of 8"}),
            "RANK=1 of 8 (and 2 more like this)\n");
  EXPECT_EQ(Folded({"i-0a1: several workers of this node claim rank 1",
                    "i-0b2: several workers of this node claim rank 1"}),
            "i-0a1: several workers of this node claim rank 1 (and 1 more like this)\n");
}

TEST(FoldedLinesTest, KeepsDifferentLines) {
  const std::vector<std::string> lines = {"i-0a1: idle", "i-0b2: busy", "i-0c3: idle",
                                          "i-0d4: a word", "pid 1: no tap"};
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  EXPECT_EQ(Folded(lines), all);
  EXPECT_EQ(Folded({"a 1", "a 2", "a 3"}, /*fold=*/false), "a 1\na 2\na 3\n");
  EXPECT_EQ(Folded({}), "");
}

TEST(FoldedLinesTest, CountsThousands) {
  FoldedLines folded({});
  for (int i = 0; i < 1'024; ++i) folded.Add(fmt::format("pid {}: SLURM_PROCID={}", i, i % 8));
  EXPECT_EQ(folded.Format(), "pid 0: SLURM_PROCID=0 (and 1023 more like this)\n");
}

}  // namespace
}  // namespace neurontrace::cli
