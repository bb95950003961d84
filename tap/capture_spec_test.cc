// SPDX-License-Identifier: Apache-2.0
// Goal: a valid command is read as it was meant; every other packet is refused with its reason.
#include "tap/capture_spec.h"

#include <string.h>

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tap/commands_test_support.h"

namespace neurontrace::tap {
namespace {

using ::testing::StrEq;

const char* Parse(const std::vector<uint8_t>& packet, AgentCommand* command) {
  return ParseCommand(packet.data(), packet.size(), command);
}

TEST(CaptureSpecTest, ReadsStart) {
  TapTestStart wanted;
  wanted.start.nc_bitmap[0] = 0b101;
  wanted.start.event_rule = static_cast<uint32_t>(TapEventRule::kOnlyThese);
  wanted.names = {"nc_exec_running", "cc_running"};
  AgentCommand command;
  ASSERT_EQ(Parse(wanted.Packet(), &command), nullptr);
  EXPECT_EQ(command.type, TapMessageType::kStart);
  EXPECT_TRUE(SameCaptureId(command.spec.capture_id, wanted.start.capture_id));
  EXPECT_TRUE(command.spec.Wants(0));
  EXPECT_FALSE(command.spec.Wants(1));
  EXPECT_FALSE(command.spec.Wants(400));
  EXPECT_TRUE(NamesEventType(command.spec, "cc_running"));
  EXPECT_FALSE(NamesEventType(command.spec, "cc"));
}

TEST(CaptureSpecTest, AnEmptyBitmapIsEveryCore) {
  AgentCommand command;
  ASSERT_EQ(Parse(TapTestStart().Packet(), &command), nullptr);
  EXPECT_TRUE(command.spec.WantsEveryCore());
  EXPECT_TRUE(command.spec.Wants(255));
  EXPECT_EQ(NextName(command.spec, nullptr), nullptr);
}

TEST(CaptureSpecTest, ReadsStop) {
  AgentCommand command;
  ASSERT_EQ(Parse(TapTestStopPacket(9), &command), nullptr);
  EXPECT_EQ(command.type, TapMessageType::kStop);
  EXPECT_EQ(command.spec.capture_id[0], 9);
}

TEST(CaptureSpecTest, ReadsTimes) {
  AgentCommand command;
  TapTestStart start = TapTestStartAt(3, 123, true);
  start.names = {"cc_running"};
  ASSERT_EQ(Parse(start.Packet(), &command), nullptr);
  EXPECT_EQ(command.at_ns, 123u);
  EXPECT_TRUE(command.spec.holds);
  EXPECT_TRUE(NamesEventType(command.spec, "cc_running"));
  ASSERT_EQ(Parse(TapTestStart().Packet(), &command), nullptr);
  EXPECT_EQ(command.at_ns, 0u);
  EXPECT_FALSE(command.spec.holds);
  ASSERT_EQ(Parse(TapTestStopPacket(3, 77), &command), nullptr);
  EXPECT_EQ(command.at_ns, 77u);
  ASSERT_EQ(Parse(TapTestStopPacket(3), &command), nullptr);
  EXPECT_EQ(command.at_ns, 0u);
}

TEST(CaptureSpecTest, ReadsCollect) {
  AgentCommand command;
  ASSERT_EQ(Parse(TapTestCollectPacket(4, 5, 99), &command), nullptr);
  EXPECT_EQ(command.type, TapMessageType::kCollect);
  EXPECT_EQ(command.recorder_id[0], 4);
  EXPECT_EQ(command.spec.capture_id[0], 5);
  EXPECT_EQ(command.at_ns, 99u);
  EXPECT_THAT(Parse(TapTestCollectPacket(0, 5), &command), StrEq("COLLECT has no capture id"));
  EXPECT_THAT(Parse(TapTestCollectPacket(5, 0), &command), StrEq("COLLECT has no capture id"));
  EXPECT_THAT(Parse(TapTestCollectPacket(5, 5), &command),
              StrEq("COLLECT names one capture as both snapshot and flight recorder"));
  std::vector<uint8_t> packet = TapTestCollectPacket(4, 5);
  packet[4] = 2;  // the version
  EXPECT_THAT(Parse(packet, &command), StrEq("the protocol version is unknown"));
}

TEST(CaptureSpecTest, RejectsOutOfBounds) {
  AgentCommand command;
  TapTestStart start;
  start.start.max_events_per_nc = kTapEventsPerCoreMin - 1;
  EXPECT_THAT(Parse(start.Packet(), &command), StrEq("START's events per core are out of range"));
  start.start.max_events_per_nc = kTapEventsPerCoreMax + 1;
  EXPECT_THAT(Parse(start.Packet(), &command), StrEq("START's events per core are out of range"));
  start = TapTestStart();
  start.start.event_rule = 3;
  EXPECT_THAT(Parse(start.Packet(), &command),
              StrEq("START has an event rule that this tap does not know"));
  start = TapTestStart();
  start.start.flags = 2;
  EXPECT_THAT(Parse(start.Packet(), &command),
              StrEq("START has flags that this tap does not know"));
  start = TapTestStart();
  memset(start.start.capture_id, 0, sizeof start.start.capture_id);
  EXPECT_THAT(Parse(start.Packet(), &command), StrEq("START has no capture id"));
}

TEST(CaptureSpecTest, RejectsInconsistentNames) {
  AgentCommand command;
  TapTestStart start;
  start.names = {std::string(kTapEventNameBytesMax + 1, 'x')};
  EXPECT_THAT(Parse(start.Packet(), &command), StrEq("an event type name has an invalid length"));
  start.names = {""};
  EXPECT_THAT(Parse(start.Packet(), &command), StrEq("an event type name has an invalid length"));
  start.names = {"a", "b"};
  std::vector<uint8_t> packet = start.Packet();
  packet.back() = 'x';
  EXPECT_THAT(Parse(packet, &command), StrEq("an event type name is not terminated"));
  start.name_count_claimed = 1;
  EXPECT_THAT(Parse(start.Packet(), &command), StrEq("bytes follow the last event type name"));
  start.name_count_claimed = 3;
  EXPECT_THAT(Parse(start.Packet(), &command), StrEq("an event type name is not terminated"));
  start.name_count_claimed = kTapEventNamesMax + 1;
  EXPECT_THAT(Parse(start.Packet(), &command), StrEq("START has too many event type names"));
}

TEST(CaptureSpecTest, RefusesBrokenHeaders) {
  AgentCommand command;
  std::vector<uint8_t> packet = TapTestStopPacket(9);
  EXPECT_THAT(ParseCommand(packet.data(), 3, &command),
              StrEq("the message is shorter than its header"));
  EXPECT_THAT(ParseCommand(packet.data(), packet.size() - 1, &command),
              StrEq("the message's length differs from the packet's"));
  packet[0] ^= 1;
  EXPECT_THAT(Parse(packet, &command), StrEq("the message has a wrong magic number"));
  packet = TapTestStopPacket(9);
  packet[4] = 3;
  EXPECT_THAT(Parse(packet, &command), StrEq("the protocol version is unknown"));
  packet = TapTestStopPacket(9);
  packet[6] = static_cast<uint8_t>(TapMessageType::kHello);
  EXPECT_THAT(Parse(packet, &command), StrEq("the message is not a command"));
}

TEST(CaptureSpecTest, NoMutationOfAValidPacketReadsOutOfBounds) {
  // For the sanitizers: the packet is a heap block of exactly its size.
  TapTestStart start;
  start.names = {"nc_exec_running", "cc_running", "kbl_exec_wait"};
  const std::vector<uint8_t> good = start.Packet();
  std::mt19937 random(42);
  auto command = std::make_unique<AgentCommand>();
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<uint8_t> packet = good;
    packet.resize(random() % 4 == 0 ? random() % good.size() : good.size());
    for (uint32_t j = random() % 4; j > 0 && !packet.empty(); --j) {
      packet[random() % packet.size()] = static_cast<uint8_t>(random());
    }
    if (Parse(packet, command.get()) == nullptr) ++accepted;
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace neurontrace::tap
