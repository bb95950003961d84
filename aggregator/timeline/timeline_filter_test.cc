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

}  // namespace
}  // namespace neurontrace
