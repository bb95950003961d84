// SPDX-License-Identifier: Apache-2.0
#include "lib/wire/suspension_codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lib/trace/limits.h"
#include "lib/wire/conversions.h"
#include "lib/wire/wire_test_support.h"

namespace neurontrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Suspension SomeSuspension() { return {SomeCapture(), 1'000, 2'000}; }

// Writes a header to bytes and reads it back, as a peer does.
absl::StatusOr<ChunkHeader> SentAndRead(
    const ChunkHeader& header, const std::function<void(v1::ChunkHeader&)>& change = nullptr) {
  v1::ChunkHeader sent;
  ToProto(header, &sent);
  if (change) change(sent);
  v1::ChunkHeader received;
  EXPECT_TRUE(received.ParseFromString(sent.SerializeAsString()));
  return FromProto(received);
}

TEST(SuspensionCodec, ReadsBackWhatItWrote) {
  for (const Suspension& value :
       {SomeSuspension(), Suspension{{}, 1, 1}, Suspension{SomeCapture(), 1, UINT64_MAX}}) {
    v1::Suspension message;
    ToProto(value, &message);
    const auto back = FromProto(message);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, value);
  }
  ChunkHeader header = SomeChunk().header;
  header.suspensions = {SomeSuspension(), {{}, 3'000, 3'000}};
  const auto back = SentAndRead(header);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, header);
}

TEST(SuspensionCodec, RefusesHostileValuesByName) {
  const auto refused = [](const std::function<void(v1::Suspension&)>& change,
                          const std::string& word) {
    v1::Suspension message;
    ToProto(SomeSuspension(), &message);
    change(message);
    const auto back = FromProto(message);
    EXPECT_TRUE(absl::IsInvalidArgument(back.status())) << word;
    EXPECT_THAT(std::string(back.status().message()), HasSubstr(word));
  };
  refused([](v1::Suspension& m) { m.set_capture_id("short"); }, "suspension.capture_id");
  refused([](v1::Suspension& m) { m.set_capture_id(std::string(1 << 20, 'x')); },
          "suspension.capture_id");
  refused([](v1::Suspension& m) { m.set_begin_ns(0); }, "suspension.begin_ns is 0");
  refused([](v1::Suspension& m) { m.clear_end_ns(); }, "later than end_ns 0");
  refused([](v1::Suspension& m) { m.set_begin_ns(UINT64_MAX); }, "later than end_ns 2000");
}

TEST(SuspensionCodec, TakesAnIdOfZerosForUnknown) {
  v1::Suspension message;
  ToProto(SomeSuspension(), &message);
  message.set_capture_id(std::string(CaptureId::kBytes, '\0'));
  EXPECT_TRUE(FromProto(message)->other.empty());
}

TEST(SuspensionCodec, RefusesAHeaderThatMayNotHaveThem) {
  ChunkHeader header = SomeChunk().header;
  header.suspensions = {SomeSuspension()};
  const auto refused = [&header](const std::function<void(v1::ChunkHeader&)>& change,
                                 const std::string& word) {
    const auto back = SentAndRead(header, change);
    EXPECT_TRUE(absl::IsInvalidArgument(back.status())) << word;
    EXPECT_THAT(std::string(back.status().message()), HasSubstr(word));
  };
  refused([](v1::ChunkHeader& m) { m.mutable_suspensions(0)->set_end_ns(1); }, "end_ns 1");
  refused(
      [](v1::ChunkHeader& m) {
        while (m.suspensions_size() <= static_cast<int>(limits::kSuspensionsPerChunkMax)) {
          *m.add_suspensions() = m.suspensions(0);
        }
      },
      "header.suspensions has 17 entries");
  refused([](v1::ChunkHeader& m) { m.mutable_stream()->set_kind(v1::STREAM_KIND_FRAMEWORK); },
          "header.suspensions is set in a stream of kind 2");
  refused([](v1::ChunkHeader& m) { m.mutable_stream()->set_kind(v1::STREAM_KIND_HOST); },
          "header.suspensions is set in a stream of kind 3");
  header.event_count = 0;
  header.losses.clear();
  header.remarks.clear();
  header.end_of_stream = false;
  refused([](v1::ChunkHeader& m) { m.set_canary_realtime_ns(1); },
          "header.suspensions is set in a canary");
}

TEST(SuspensionCodec, SendsOnlyWhatIsAccepted) {
  ChunkHeader header = SomeChunk().header;
  header.suspensions = {{SomeCapture(), 0, 5}, {SomeCapture(), 5, 4}, SomeSuspension()};
  auto back = SentAndRead(header);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(back->suspensions, ElementsAre(SomeSuspension()));
  header.suspensions.assign(limits::kSuspensionsPerChunkMax + 5, SomeSuspension());
  back = SentAndRead(header);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(back->suspensions, SizeIs(limits::kSuspensionsPerChunkMax));
}

// Builds before this field reported a suspension as a loss of no events with this text.
TEST(SuspensionCodec, ATextIsNoSuspension) {
  ChunkHeader header = SomeChunk().header;
  header.losses = {{LossPlace::kRuntimeRing, LossReason::kRefused, 0, false, 1'000, 2'000,
                    "capture " + SomeCapture().ToString() + " had the worker"}};
  const auto back = SentAndRead(header);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->losses, header.losses);
  EXPECT_TRUE(back->suspensions.empty());
}

}  // namespace
}  // namespace neurontrace
