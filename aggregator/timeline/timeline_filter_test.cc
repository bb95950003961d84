// SPDX-License-Identifier: Apache-2.0
// Which streams a filter selects.
#include "aggregator/timeline/timeline_filter.h"

#include <gtest/gtest.h>

namespace neurontrace {
namespace {

StreamDescription StreamOf(StreamKind kind) {
  StreamDescription stream;
  stream.identity.worker.instance_id = "i-a";
  stream.identity.kind = kind;
  return stream;
}

TEST(TimelineFilter, SamplesOfHostsAreForReadersThatAskForThem) {
  TimelineFilter filter;
  EXPECT_FALSE(filter.SelectsStream(StreamOf(StreamKind::kHost)));
  EXPECT_TRUE(filter.SelectsStream(StreamOf(StreamKind::kNeuronCore)));
  filter.stream_kinds = {StreamKind::kHost};
  EXPECT_FALSE(filter.SelectsStream(StreamOf(StreamKind::kHost)));
  filter.host_samples = true;
  EXPECT_TRUE(filter.SelectsStream(StreamOf(StreamKind::kHost)));
  EXPECT_FALSE(filter.SelectsStream(StreamOf(StreamKind::kNeuronCore)));
  filter.instance_ids = {"i-b"};
  EXPECT_FALSE(filter.SelectsStream(StreamOf(StreamKind::kHost)));
}

TEST(TimelineFilter, HostsHaveNeitherCoresNorRanks) {
  TimelineFilter filter;
  filter.host_samples = true;
  EXPECT_TRUE(filter.SelectsStream(StreamOf(StreamKind::kHost)));
  filter.neuron_cores = {0};
  EXPECT_FALSE(filter.SelectsStream(StreamOf(StreamKind::kHost)));
  filter.neuron_cores.clear();
  filter.worker_gids = {{0, 5}};
  EXPECT_FALSE(filter.SelectsStream(StreamOf(StreamKind::kHost)));
}

TEST(TimelineFilter, SelectsTheWorkersOfAJob) {
  TimelineFilter filter;
  StreamDescription stream = StreamOf(StreamKind::kNeuronCore);
  stream.job = "llama";
  EXPECT_TRUE(filter.SelectsStream(stream));
  filter.job = "llama";
  EXPECT_TRUE(filter.SelectsStream(stream));
  stream.job = "other";
  EXPECT_FALSE(filter.SelectsStream(stream));
  stream.job.clear();
  EXPECT_FALSE(filter.SelectsStream(stream));
}

TEST(TimelineFilter, SelectsStreamsByTheirNumbers) {
  TimelineFilter filter;
  filter.streams = {{.first = 4, .last = 6}, {.first = 9, .last = 9}};
  StreamDescription stream = StreamOf(StreamKind::kFramework);
  for (const uint32_t number : {4u, 6u, 9u}) {
    stream.number = number;
    EXPECT_TRUE(filter.SelectsStream(stream)) << number;
  }
  for (const uint32_t number : {3u, 7u, 10u}) {
    stream.number = number;
    EXPECT_FALSE(filter.SelectsStream(stream)) << number;
  }
}

TEST(TimelineFilter, AChunkIsSelectedByTheTypesOfItsIndexEntry) {
  ChunkEntry chunk;
  chunk.event_types = {"nc_exec_running", "nrt_execute"};
  const auto selects = [&chunk](const std::vector<std::string>& items) {
    TimelineFilter filter;
    filter.event_types = *EventFilter::Parse(items);
    return filter.CanSelectFrom(chunk);
  };
  EXPECT_TRUE(selects({}));
  EXPECT_TRUE(selects({"nrt_execute"}));
  EXPECT_TRUE(selects({"device_exec"})) << "an older name of a type";
  EXPECT_TRUE(selects({"nrt_*"}));
  EXPECT_TRUE(selects({"hardware"}));
  EXPECT_TRUE(selects({"^nrt_execute"}));
  EXPECT_FALSE(selects({"cc_running"}));
  EXPECT_FALSE(selects({"software", "^nrt_execute"}));
  EXPECT_FALSE(selects({"^nrt_*", "^nc_*"}));
  EXPECT_FALSE(selects({"nrt_tensor_*"}));
  chunk.event_types->clear();
  EXPECT_TRUE(selects({}));
  EXPECT_FALSE(selects({"^nrt_execute"}));
  chunk.event_types.reset();
  EXPECT_TRUE(selects({"cc_running"})) << "the chunk may have any type";
}

}  // namespace
}  // namespace neurontrace
