// SPDX-License-Identifier: Apache-2.0
// The standard's own examples, in one piece and in many.
#include "lib/base/sha256.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

TEST(Sha256Test, GivesTheStandardsExamples) {
  EXPECT_EQ(Sha256HexOf(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256HexOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256HexOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Sha256Test, PiecewiseHashEqualsWholeAndFinishResets) {
  Sha256 sha;
  sha.Update("a");
  sha.Update("");
  sha.Update("bc");
  EXPECT_EQ(HexOf(sha.Finish()), Sha256HexOf("abc"));
  sha.Update("abc");
  EXPECT_EQ(HexOf(sha.Finish()), Sha256HexOf("abc"));
}

}  // namespace
}  // namespace neurontrace
