// SPDX-License-Identifier: Apache-2.0
// Whose turn it is: order within a stream, fairness between streams, and the window's bound.
#include "agent/upload/ack_window.h"

#include <gtest/gtest.h>

#include <string>

namespace neurontrace {
namespace {

// The next `n` turns as "stream:index" words.
std::string Turns(AckWindow& window, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    const auto turn = window.TakeTurn();
    if (!turn) return text + "-";
    text += std::to_string(turn->stream) + ":" + std::to_string(turn->index) + " ";
  }
  return text;
}

void AddMany(AckWindow& window, StreamNumber stream, int n) {
  for (int i = 0; i < n; ++i) window.Add(stream);
}

TEST(AckWindow, StreamsTakeTurnsHoweverLoud) {
  AckWindow window(100);
  AddMany(window, 1, 50);
  EXPECT_EQ(Turns(window, 3), "1:0 1:1 1:2 ");
  AddMany(window, 2, 2);
  AddMany(window, 3, 1);
  EXPECT_EQ(Turns(window, 7), "1:3 2:0 3:0 1:4 2:1 1:5 1:6 ");
}

TEST(AckWindow, LimitsChunksInFlight) {
  AckWindow window(3);
  AddMany(window, 1, 10);
  AddMany(window, 2, 10);
  EXPECT_EQ(Turns(window, 9), "1:0 2:0 1:1 -");
  EXPECT_EQ(window.in_flight(), 3u);
  window.PopFront(1);
  EXPECT_EQ(Turns(window, 9), "2:1 -");
  window.PopFront(2);
  window.PopFront(1);
  EXPECT_EQ(Turns(window, 9), "1:0 2:1 -");
}

TEST(AckWindow, RewoundChunksComeAgainInOrder) {
  AckWindow window(10);
  AddMany(window, 1, 4);
  EXPECT_EQ(Turns(window, 9), "1:0 1:1 1:2 1:3 -");
  window.Rewind(1, 1);
  EXPECT_EQ(window.in_flight(), 1u);
  EXPECT_EQ(Turns(window, 9), "1:1 1:2 1:3 -");
  window.RewindAll();
  EXPECT_EQ(window.in_flight(), 0u);
  EXPECT_EQ(Turns(window, 9), "1:0 1:1 1:2 1:3 -");
}

TEST(AckWindow, PausedStreamsHoldUpNobody) {
  AckWindow window(10);
  AddMany(window, 1, 2);
  AddMany(window, 2, 2);
  window.Pause(1);
  EXPECT_EQ(Turns(window, 9), "2:0 2:1 -");
  window.Resume(1);
  EXPECT_EQ(Turns(window, 9), "1:0 1:1 -");
}

TEST(AckWindow, RemovedStreamsFreeTheirShare) {
  AckWindow window(2);
  AddMany(window, 1, 5);
  AddMany(window, 2, 1);
  EXPECT_EQ(Turns(window, 9), "1:0 2:0 -");
  window.Remove(1);
  EXPECT_EQ(window.in_flight(), 1u);
  EXPECT_EQ(Turns(window, 9), "-");
  AddMany(window, 1, 1);
  EXPECT_EQ(Turns(window, 9), "1:0 -");
  EXPECT_EQ(window.in_flight(1), 1u);
  EXPECT_EQ(window.in_flight(7), 0u);
}

TEST(AckWindow, ChunksStoredBeforeTheyWereSentJustLeave) {
  AckWindow window(10);
  AddMany(window, 1, 3);
  window.PopFront(1);
  EXPECT_EQ(window.in_flight(), 0u);
  EXPECT_EQ(Turns(window, 9), "1:0 1:1 -");
}

}  // namespace
}  // namespace neurontrace
