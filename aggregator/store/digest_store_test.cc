// SPDX-License-Identifier: Apache-2.0
#include "aggregator/store/digest_store.h"

#include <gtest/gtest.h>

#include "aggregator/store/store_test_support.h"

namespace neurontrace {
namespace {

uint64_t NextFirst(const Store& store, uint8_t capture, uint32_t stream, uint8_t level,
                   uint64_t from) {
  const auto found = store.digests().Next(TestCaptureId(capture), stream, level, from);
  EXPECT_TRUE(found.ok()) << found.status();
  return found->has_value() ? (*found)->first : UINT64_MAX;
}

void PutDigest(Store& store, uint8_t capture, uint32_t stream, uint8_t level, uint64_t first) {
  const StoredDigest digest{level, first, "digest"};
  ASSERT_TRUE(store.digests().Put(TestCaptureId(capture), stream, {&digest, 1}).ok());
}

TEST(DigestStoreTest, FindsDigestsOfOneStreamAndLevel) {
  const auto store = OpenInMemory();
  PutDigest(*store, 1, 0, 0, 8);
  PutDigest(*store, 1, 0, 0, 16);
  PutDigest(*store, 1, 0, 1, 0);
  PutDigest(*store, 1, 1, 0, 24);
  EXPECT_EQ(NextFirst(*store, 1, 0, 0, 0), 8u);
  EXPECT_EQ(NextFirst(*store, 1, 0, 0, 9), 16u);
  EXPECT_EQ(NextFirst(*store, 1, 0, 0, 17), UINT64_MAX);
  EXPECT_EQ(NextFirst(*store, 1, 0, 1, 0), 0u);
  EXPECT_EQ(NextFirst(*store, 2, 0, 0, 0), UINT64_MAX);
  EXPECT_EQ((*store->digests().Last(TestCaptureId(1), 0, 0))->first, 16u);
  EXPECT_FALSE(store->digests().Last(TestCaptureId(1), 1, 1)->has_value());
  ASSERT_TRUE(store->digests().DeleteRange(TestCaptureId(1), 0, 0, 0, 16).ok());
  EXPECT_EQ(NextFirst(*store, 1, 0, 0, 0), 16u);
}

TEST(DigestStoreTest, AReaderFindsTheSameWhereverItIs) {
  const auto store = OpenInMemory();
  for (const uint32_t stream : {0u, 1u}) {
    for (const uint64_t first : {0, 8, 24}) PutDigest(*store, 1, stream, 0, first);
    PutDigest(*store, 1, stream, 1, 0);
    PutDigest(*store, 1, stream, 3, 0);
  }
  // Every place after every other one: some are one step away, and some are not.
  const auto find = [&](DigestReader& reader, uint32_t place) {
    const auto found = reader.Next(TestCaptureId(1), place / 16, place / 4 % 4, 8 * (place % 4));
    EXPECT_TRUE(found.ok()) << found.status();
    return found->has_value() ? (*found)->first : UINT64_MAX;
  };
  for (uint32_t before = 0; before < 32; ++before) {
    for (uint32_t place = 0; place < 32; ++place) {
      const auto moved = store->digests().OpenReader();
      find(*moved, before);
      EXPECT_EQ(find(*moved, place), find(*store->digests().OpenReader(), place))
          << before << " " << place;
    }
  }
}

TEST(DigestStoreTest, GoesWithItsCapture) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(1), true).ok());
  ASSERT_TRUE(store->captures().Put(TestCapture(2), true).ok());
  PutDigest(*store, 1, 0, 0, 0);
  PutDigest(*store, 2, 0, 0, 0);
  ASSERT_TRUE(store->DeleteCapture(TestCaptureId(1)).ok());
  EXPECT_EQ(NextFirst(*store, 1, 0, 0, 0), UINT64_MAX);
  EXPECT_EQ(NextFirst(*store, 2, 0, 0, 0), 0u);
}

TEST(DigestStoreTest, RemainsOfADeletionGoAtTheNextStart) {
  const auto store = OpenInMemory();
  ASSERT_TRUE(store->captures().Put(TestCapture(2), true).ok());
  PutDigest(*store, 1, 0, 0, 0);
  PutDigest(*store, 1, 3, 2, 0);
  PutDigest(*store, 2, 0, 0, 0);
  ASSERT_TRUE(store->digests().FinishDeletions().ok());
  EXPECT_EQ(NextFirst(*store, 1, 0, 0, 0), UINT64_MAX);
  EXPECT_EQ(NextFirst(*store, 1, 3, 2, 0), UINT64_MAX);
  EXPECT_EQ(NextFirst(*store, 2, 0, 0, 0), 0u);
}

}  // namespace
}  // namespace neurontrace
