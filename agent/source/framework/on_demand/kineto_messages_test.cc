// SPDX-License-Identifier: Apache-2.0
#include "agent/source/framework/on_demand/kineto_messages.h"

#include <gtest/gtest.h>

#include <string>

#include "lib/trace/framework_limits.h"

namespace neurontrace {
namespace {

using namespace std::string_literals;

// Written by hand from the layout, byte by byte, so that no function of this folder is on both
// sides: a size of 8 bytes, a type of 32, a body.
const std::string kTypeReq = "req"s + std::string(29, '\0');
const std::string kTypeCtxt = "ctxt"s + std::string(28, '\0');
const std::string kRequest = "\x18\0\0\0\0\0\0\0"s + kTypeReq +
                             "\x03\0\0\0"s +                 // kind: events and activities
                             "\x02\0\0\0"s +                 // two processes
                             "\x67\x12\0\0\0\0\0\0"s +       // job 4711
                             "\x07\0\0\0"s + "\x01\0\0\0"s;  // 7, started by 1
const std::string kContext =
    "\x10\0\0\0\0\0\0\0"s + kTypeCtxt + "\0\0\0\0"s + "\x07\0\0\0"s + "\x67\x12\0\0\0\0\0\0"s;

std::string WithByte(std::string datagram, size_t at, char byte) {
  datagram[at] = byte;
  return datagram;
}

TEST(KinetoMessages, ParsesTheTwoMessagesOfWorkers) {
  const auto request = ParseKinetoDatagram(kRequest);
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(std::get<KinetoRequest>(*request),
            (KinetoRequest{.takes_activities = true, .job_id = 4711, .pids = {7, 1}}));
  const auto context = ParseKinetoDatagram(kContext);
  ASSERT_TRUE(context.ok()) << context.status();
  EXPECT_EQ(std::get<KinetoContext>(*context), (KinetoContext{.gpu = 0, .pid = 7, .job_id = 4711}));
}

TEST(KinetoMessages, AWorkerWhoseProfilerIsInUseTakesNoActivities) {
  for (const char kind : {'\0', '\1'}) {
    const auto request = ParseKinetoDatagram(WithByte(kRequest, 40, kind));
    ASSERT_TRUE(request.ok());
    EXPECT_FALSE(std::get<KinetoRequest>(*request).takes_activities);
  }
}

TEST(KinetoMessages, RefusesWhatIsNeither) {
  EXPECT_FALSE(ParseKinetoDatagram("").ok());
  for (size_t size = 0; size < kRequest.size(); ++size) {
    EXPECT_FALSE(ParseKinetoDatagram(std::string_view(kRequest).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseKinetoDatagram(kRequest + "\0\0\0\0"s).ok()) << "longer than its size";
  EXPECT_FALSE(ParseKinetoDatagram(WithByte(kRequest, 0, '\x14')).ok()) << "another size";
  EXPECT_FALSE(ParseKinetoDatagram(WithByte(kRequest, 8, 'R')).ok()) << "another type";
  EXPECT_FALSE(ParseKinetoDatagram(WithByte(kRequest, 40, '\4')).ok()) << "an unknown kind";
  EXPECT_FALSE(ParseKinetoDatagram(WithByte(kRequest, 43, '\x80')).ok()) << "a negative kind";
  EXPECT_FALSE(ParseKinetoDatagram(WithByte(kRequest, 44, '\3')).ok()) << "more than it has";
  EXPECT_FALSE(ParseKinetoDatagram(WithByte(kRequest, 44, '\1')).ok()) << "fewer than it has";
  EXPECT_FALSE(ParseKinetoDatagram(WithByte(kRequest, 47, '\xff')).ok()) << "a negative number";
}

TEST(KinetoMessages, RefusesMoreProcessesThanTheLimit) {
  const auto of = [](size_t count) {
    std::string body = "\x02\0\0\0"s;
    body += static_cast<char>(count & 0xff);
    body += static_cast<char>(count >> 8);
    body += std::string(10 + 4 * count, '\0');
    std::string size(8, '\0');
    size[0] = static_cast<char>(body.size() & 0xff);
    size[1] = static_cast<char>(body.size() >> 8);
    return size + kTypeReq + body;
  };
  EXPECT_TRUE(ParseKinetoDatagram(of(limits::kKinetoPidsMax)).ok());
  EXPECT_FALSE(ParseKinetoDatagram(of(limits::kKinetoPidsMax + 1)).ok());
}

TEST(KinetoMessages, AnswersInTheSameForm) {
  EXPECT_EQ(KinetoAnswer(""), std::string(8, '\0') + kTypeReq);
  EXPECT_EQ(KinetoAnswer("A=1"), "\x03\0\0\0\0\0\0\0"s + kTypeReq + "A=1");
  EXPECT_EQ(KinetoContextAnswer(), "\x04\0\0\0\0\0\0\0"s + kTypeCtxt + "\1\0\0\0"s);
}

}  // namespace
}  // namespace neurontrace
