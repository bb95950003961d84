// SPDX-License-Identifier: Apache-2.0
// Reads Perfetto traces in all their forms: protobuf's decoder, zlib, and `neurontrace validate`
// for whether a file is sound.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <algorithm>
#include <protozero/pbf_reader.hpp>

#include "tests/e2e/pftrace_check/checker.h"
#include "tests/export/export_fixture.h"
#include "tests/export/format_readers.h"
#include "tests/export/inflate.h"

namespace neurontrace {
namespace {

constexpr uint64_t kPartBytes = 1 << 20;  // the least that there is
constexpr uint32_t kPacket = 1;
constexpr uint32_t kCompressedPackets = 50;

SeenEvent SeenSlice(const pftrace_check::Slice& slice, bool is_instant) {
  SeenEvent seen;
  const bool is_framework = TextIn(slice.arguments, "trace_event_source") == "framework";
  seen.id = NumberIn(slice.arguments, is_framework ? "p.id" : "id");
  seen.name = ValidUtf8(slice.name);
  if (is_framework) seen.category = ValidUtf8(slice.category);
  // docs/formats/pftrace.md: the name of an execution has its model's behind it.
  const std::string model = " " + TextIn(slice.arguments, "model_name");
  if (seen.name == "nc_exec_running" + model) seen.name.resize(seen.name.size() - model.size());
  seen.start_ns = slice.start_ns;
  seen.end_ns = slice.end_ns;
  seen.is_instant = is_instant;
  seen.instance_id = TextIn(slice.arguments, "instance_id");
  const auto id_of = [&](const std::string& number, const std::string& text) {
    const bool is_number = slice.arguments.contains(number);
    return is_number ? TextIn(slice.arguments, number) : ValidUtf8(TextIn(slice.arguments, text));
  };
  seen.process_id = id_of("process_id", "process_text");
  seen.nc_idx = TextIn(slice.arguments, "nc_idx");
  seen.thread_id = id_of("thread_id", "thread_text");
  seen.is_open = TextIn(slice.arguments, "open") == "true";
  seen.is_start_lost = TextIn(slice.arguments, "start_lost") == "true";
  seen.nrta_seq_id = TextIn(slice.arguments, "nrta_seq_id");
  // docs/formats/pftrace.md: a span beyond what overlaps at most "is written without its length,
  // with the arguments `squeezed` and `duration`".
  if (TextIn(slice.arguments, "squeezed") == "true") {
    seen.end_ns += NumberIn(slice.arguments, "duration");
  }
  ReadAttributes(slice.arguments, seen);
  return seen;
}

// "3 spans are shown without the attributes of their stops, because …": an instant on
// the track of the warnings.
uint64_t StopsNotShown(std::string_view warning) {
  constexpr std::string_view kWords = " spans are shown without the attributes of their stops";
  return warning.find(kWords) == std::string_view::npos ? 0 : NumberOf(warning);
}

void ReadSamples(const pftrace_check::Track& track, SeenCapture& found) {
  constexpr std::string_view kHost = " host";
  if (!track.process.ends_with(kHost)) return;
  std::string series = track.name;
  if (series == "memory used") {
    series = "memory";
  } else if (series.starts_with("CPU ")) {
    series = "cpu " + series.substr(4);
  } else {
    return;
  }
  const std::string instance = track.process.substr(0, track.process.size() - kHost.size());
  for (const auto& [at_ns, value] : track.counter) {
    found.samples.insert({instance, series, at_ns, value});
  }
}

// Arrows between slices of frameworks' files.
void TakeArrows(const pftrace_check::Report& report, SeenCapture& found) {
  const auto id_of = [&](const pftrace_check::SlicePlace& place) -> uint64_t {
    const pftrace_check::Slice& slice = report.tracks[place.track].slices[place.slice];
    if (TextIn(slice.arguments, "trace_event_source") != "framework") return 0;
    return NumberIn(slice.arguments, "p.id");
  };
  for (const pftrace_check::Arrow& arrow : report.arrows) {
    const uint64_t from = id_of(arrow.from);
    const uint64_t to = id_of(arrow.to);
    if (from != 0 && to != 0) found.arrows.emplace(from, to);
  }
}

// "Where its stop lies in a later chunk, that one's attributes are on an instant of the same name
// …, which names the span by `stop_of_id`."
void TakeLateStop(const pftrace_check::Slice& instant, std::vector<SeenEvent>& events) {
  const uint64_t id = NumberIn(instant.arguments, "stop_of_id");
  if (id == 0) return;
  const auto of_span = [id](const SeenEvent& event) { return event.id == id; };
  const auto span = std::find_if(events.begin(), events.end(), of_span);
  ASSERT_NE(span, events.end()) << "a stop of nothing";
  ReadAttributes(instant.arguments, *span);
}

void ReadTrace(std::string_view trace, SeenCapture& found) {
  const pftrace_check::Report report = pftrace_check::Check(trace);
  EXPECT_TRUE(report.errors.empty()) << report.errors.front();
  for (const pftrace_check::Track& track : report.tracks) {
    ReadSamples(track, found);
    for (const auto& slice : track.slices) {
      found.events.push_back(SeenSlice(slice, false));
    }
    for (const auto& instant : track.instants) {
      found.events.push_back(SeenSlice(instant, true));
      found.stops_not_shown += StopsNotShown(instant.name);
      TakeLateStop(instant, found.events);
    }
  }
  std::erase_if(found.events, [](const SeenEvent& event) { return event.id == 0; });
  TakeArrows(report, found);
}

// Each part by itself; what the index names is what is there.
SeenCapture ReadParts(ChunkSource& source, ExportRequest request) {
  request.max_file_bytes = kPartBytes;
  auto files = ExportFiles("perfetto", source, request);
  auto index = files.extract("system_profile.parts.json");
  if (index.empty()) {
    ADD_FAILURE() << "no index of the parts";
    return {};
  }
  simdjson::dom::parser parser;
  const simdjson::dom::element document = parser.parse(index.mapped());
  SeenCapture found;
  size_t named = 0;
  for (const simdjson::dom::element part : document["parts"].get_array()) {
    const std::string name = TextOf(part["file"]);
    if (!files.contains(name)) {
      ADD_FAILURE() << "the index names " << name << ", which is not there";
      continue;
    }
    ++named;
    const std::string& trace = files.at(name);
    EXPECT_EQ(NumberOf(TextOf(part["bytes"])), trace.size()) << name;
    ExpectSound(trace);
    ReadTrace(trace, found);
  }
  EXPECT_EQ(named, files.size()) << "parts that the index does not name";
  return found;
}

}  // namespace

SeenCapture ReadPerfetto(ChunkSource& source, const TimelineFilter& filter) {
  std::vector<std::string> warnings;
  const auto files = ExportFiles("perfetto", source, {.filter = filter}, &warnings);
  const std::string& trace = files.at("system_profile.pftrace");
  ExpectSound(trace);
  SeenCapture found;
  ReadTrace(trace, found);
  for (const std::string& warning : warnings) {
    if (warning.find("arrows of framework traces are not drawn") != std::string::npos) {
      found.arrows_not_drawn = NumberOf(warning);
    }
  }
  return found;
}

SeenCapture ReadPerfettoGzip(ChunkSource& source, const TimelineFilter& filter) {
  const auto files =
      ExportFiles("perfetto", source, {.filter = filter, .compression = ExportCompression::kGzip});
  const std::string& packed = files.at("system_profile.pftrace.gz");
  ExpectSound(packed);
  SeenCapture found;
  ReadTrace(Inflate(packed, Wrapping::kGzip), found);
  return found;
}

SeenCapture ReadPerfettoPackets(ChunkSource& source, const TimelineFilter& filter) {
  const auto files = ExportFiles("perfetto", source,
                                 {.filter = filter, .compression = ExportCompression::kPackets});
  const std::string& packed = files.at("system_profile.pftrace");
  ExpectSound(packed);
  std::string trace;
  for (protozero::pbf_reader file(packed); file.next(kPacket);) {
    for (protozero::pbf_reader packet = file.get_message(); packet.next();) {
      if (packet.tag() != kCompressedPackets) {
        ADD_FAILURE() << "a packet that is not compressed has field " << packet.tag();
        return {};
      }
      const protozero::data_view bytes = packet.get_view();
      trace += Inflate({bytes.data(), bytes.size()}, Wrapping::kZlib);
    }
  }
  SeenCapture found;
  ReadTrace(trace, found);
  return found;
}

SeenCapture ReadPerfettoByTime(ChunkSource& source, const TimelineFilter& filter) {
  return ReadParts(source, {.filter = filter});
}

SeenCapture ReadPerfettoByWorker(ChunkSource& source, const TimelineFilter& filter) {
  return ReadParts(source, {.filter = filter, .split_by_worker = true});
}

}  // namespace neurontrace
