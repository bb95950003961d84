// SPDX-License-Identifier: Apache-2.0
// One or two chunks as a hostile agent may make them, exported in one of the formats. Bytes are a
// recipe and not the chunk: what is well formed and a few hundred bytes on the wire can name, and
// repeat, far more than any builder would. Whatever a reader takes must be written within a bound
// that its texts and its number of events give.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "aggregator/export/exporter.h"
#include "aggregator/timeline/fake_chunk_source.h"
#include "lib/base/time_units.h"
#include "lib/trace/chunk_text.h"
#include "lib/trace/event_chunk.h"
#include "lib/trace/limits.h"
#include "lib/trace/raw_columns_test_support.h"

namespace neurontrace {
namespace {

// Texts that mean something to an exporter.
constexpr std::array<std::string_view, 24> kWords = {"",
                                                     "name",
                                                     "data.name",
                                                     "stop_name",
                                                     "pid",
                                                     "tid",
                                                     "dur_ns",
                                                     "flow_id",
                                                     "labels",
                                                     "process_name",
                                                     "thread_name",
                                                     "nc_timestamp_ns",
                                                     "model_name",
                                                     "exec_id",
                                                     "device_core_idx",
                                                     "nrt_execute",
                                                     "nc_exec_running",
                                                     "__metadata",
                                                     "kernel",
                                                     "{\"a\":[1,2]}",
                                                     "\xff\"\\",
                                                     "host_cpu",
                                                     "12",
                                                     "[12,13]"};
// No larger than they have to be: what is at the limits takes seconds under a sanitizer, and has
// tests of its own.
constexpr std::array<size_t, 3> kLengths = {1, 64, 1'000};
constexpr std::array<uint64_t, 6> kSteps = {
    0, 1, 1'000, 1'000'000'000, uint64_t{1} << 50, uint64_t{1} << 62};

class Recipe {
 public:
  explicit Recipe(std::string_view bytes) : bytes_(bytes) {}
  // 0 when there are no more.
  uint8_t Next() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  uint32_t Below(size_t end) { return static_cast<uint32_t>(Next() % end); }

  RawColumns Columns() {
    RawColumns columns;
    columns.strings.assign(kWords.begin(), kWords.end());
    for (uint32_t i = Below(4); i > 0; --i) {
      const size_t length = kLengths[Below(kLengths.size())];
      columns.strings.emplace_back(length, static_cast<char>(Next()));
    }
    for (uint32_t i = 1 + Below(4); i > 0; --i) {
      const RawShape shape = NextShape(columns.strings.size());
      columns.shapes.insert(columns.shapes.end(), size_t{1} << Below(7), shape);
    }
    uint64_t now_ns = kSteps[Below(kSteps.size())];
    for (uint32_t i = 1 + Below(4); i > 0; --i) PutEvents(now_ns, columns);
    return columns;
  }

 private:
  RawShape NextShape(size_t strings) {
    RawShape shape{.event_type = Below(strings), .phase = static_cast<Phase>(Below(kPhaseMax + 1))};
    shape.present |= Next();
    for (uint32_t i = Below(6); i > 0; --i) {
      RawKey key{.name = Below(strings),
                 .type = static_cast<ValueType>(Below(kValueTypeMax + 1)),
                 .scope = static_cast<KeyScope>(Below(2))};
      key.value = chunk_format::IsText(key.type) ? Below(strings) : Next();
      shape.keys.insert(shape.keys.end(), 1 + Below(limits::kAttributesPerEventMax), key);
    }
    shape.keys.resize(std::min<size_t>(shape.keys.size(), limits::kAttributesPerEventMax));
    return shape;
  }
  void PutEvents(uint64_t& now_ns, RawColumns& columns) {
    const size_t count =
        std::min<size_t>(size_t{1} << Below(7), limits::kChunkEventsMax - columns.events.size());
    const auto shape = static_cast<uint16_t>((Next() | Next() << 8) % columns.shapes.size());
    const uint64_t step_ns = kSteps[Below(kSteps.size())];
    const bool is_counting = Below(2) == 1;
    for (uint64_t i = 0; i < count; ++i) {
      columns.events.push_back({now_ns, shape, is_counting ? i : 0});
      now_ns = AddSaturating(now_ns, step_ns);
    }
  }

  std::string_view bytes_;
};

// At most what an export may write of a chunk: each text twice, each of its bytes escaped with six,
// and what is ours of an event, with the longest of all renamed keys.
size_t OutputBytesMax(const DecodedChunk& chunk) {
  size_t bytes = chunk.size() * (size_t{16} << 10);
  for (size_t i = 0; i < chunk.size(); ++i) {
    const Shape& shape = chunk.shapes()[chunk.shape_of()[i]];
    bytes += 12 * NameBytes(shape);
    for (uint32_t k = 0; k < shape.keys.size(); ++k) bytes += 12 * chunk.value(i, k).text.size();
  }
  return bytes;
}

class CountingFiles : public OutputFiles {
 public:
  explicit CountingFiles(size_t bytes_max) : room_(bytes_max) {}
  absl::StatusOr<std::unique_ptr<OutputFile>> Open(std::string_view) override {
    return std::make_unique<File>(room_);
  }

 private:
  class File : public OutputFile {
   public:
    explicit File(size_t& room) : room_(room) {}
    absl::Status Write(std::string_view bytes) override {
      if (bytes.size() > room_) {
        fprintf(stderr, "an export writes more than its chunks can be\n");
        abort();
      }
      room_ -= bytes.size();
      return absl::OkStatus();
    }
    absl::Status Close() override { return absl::OkStatus(); }

   private:
    size_t& room_;
  };
  size_t room_;
};

StreamIdentity Identity(uint32_t kind) {
  StreamIdentity identity{.agent_id = "a", .worker = {"i", "boot", 1, 1, ""}};
  if (kind == 0) {
    identity.nc_idx = 0;
  } else {
    constexpr StreamKind kKinds[] = {StreamKind::kFramework, StreamKind::kHost,
                                     StreamKind::kAnnotation};
    identity.kind = kKinds[kind - 1];
    identity.name = "worker0.pt.trace.json";
  }
  return identity;
}

void Run(std::string_view bytes) {
  Recipe recipe(bytes);
  const ExportFormat& format = ExportFormats()[recipe.Below(ExportFormats().size())];
  FakeChunkSource source;
  const uint32_t stream = source.AddStream(Identity(recipe.Below(4)));
  const uint32_t other = source.AddStream(Identity(recipe.Below(4)));
  size_t bytes_max = size_t{1} << 20;
  for (const uint32_t to : {stream, recipe.Below(2) == 0 ? stream : other}) {
    const std::string columns = recipe.Columns().Bytes();
    DecodedChunk chunk;
    if (!chunk.Decode(columns).ok()) continue;
    bytes_max += OutputBytesMax(chunk);
    source.AddColumns(to, columns);
  }
  CountingFiles files(bytes_max);
  const auto summary = ExportCapture(source, format, {}, files, {});
  if (summary.ok() || absl::IsUnimplemented(summary.status())) return;
  fprintf(stderr, "%s: %s\n", std::string(format.name).c_str(),
          summary.status().ToString().c_str());
  abort();
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  neurontrace::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
