// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/derive/framework_links.h"
#include "aggregator/export/exporter.h"
#include "aggregator/export/rows/event_attributes.h"
#include "aggregator/export/rows/row_exporter.h"
#include "aggregator/export/waiting_spans.h"
#include "aggregator/export/xspace/plane_buffer.h"

namespace neurontrace {

// Returns "2025_12_18_15_35_56", as TensorBoard names a run that began at this time (UTC).
std::string XSpaceRunName(uint64_t epoch_ns);

// Returns an instance id as part of a file's name: at most 128 bytes, without slashes.
std::string XSpaceHostName(std::string_view instance_id);

// Writes a timeline as XSpace files in TensorBoard's layout, one for each instance:
// plugins/profile/RUN/INSTANCE.xplane.pb. A process is a plane, and its rows are the plane's lines;
// docs/formats/xspace.md defines planes, lines and stats. Memory is bounded: what is buffered
// beyond kBufferedBytesMax is written, the largest plane first. Used by one thread at a time;
// `files` must outlive it.
class XSpaceExporter final : public RowExporter {
 public:
  // Viewers load a whole file, which takes twenty times its size. Events of an instance beyond this
  // are omitted, counted and named in a warning.
  static constexpr uint64_t kHostBytesMax = uint64_t{256} << 20;
  static constexpr size_t kBufferedBytesMax = size_t{8} << 20;
  // Files that can be open at once before the end. Events of further instances are omitted, as are
  // those beyond kHostBytesMax, once their buffers are full.
  static constexpr size_t kHostsOpenMax = 480;
  // Planes of one instance that the viewer shows; further processes share the last.
  static constexpr size_t kPlanesMax = 199;

  struct Options {
    Grouping grouping;
    bool no_flows = false;
    uint64_t host_bytes_max = kHostBytesMax;
    size_t buffered_bytes_max = kBufferedBytesMax;
  };
  XSpaceExporter(Options options, OutputFiles& files)
      : RowExporter(options.grouping, options.no_flows),
        options_(std::move(options)),
        files_(files) {}

  absl::Status Begin(const TimelineHeader& header) override;
  absl::Status Finish(ExportSummary& summary) override;
  uint64_t bytes_written() const override { return bytes_written_; }

 private:
  // One instance's file.
  struct Host {
    std::string instance_id;
    std::string file_name;
    // Null until something is written.
    std::unique_ptr<OutputFile> file;
    std::vector<std::unique_ptr<PlaneBuffer>> planes;
    // Written and buffered, roughly.
    uint64_t bytes = 0;
    // Events that were omitted, and the time of the first of them.
    uint64_t left_out = 0;
    uint64_t left_out_from_ns = 0;
  };
  // The plane of a process, in a host's file.
  struct Place {
    // Indexes into hosts_ and into the planes of that host.
    uint32_t host = 0;
    uint32_t plane = 0;
  };
  // The lines of one row.
  struct Line {
    Place place;
    // For each lane, its line number in the plane.
    std::vector<uint32_t> lanes;
  };
  // An event apart from its attributes. Times count from origin_ns_.
  struct Item {
    std::string name;
    uint64_t start_ns = 0;
    uint64_t duration_ns = 0;
    uint64_t flow = 0;
    // Set for a framework's span that arrows can touch, else 0.
    uint64_t number = 0;
  };
  // A span that waits for its stop, with copies of the texts that its attributes point to.
  struct Waiting {
    uint32_t row = 0;
    uint32_t lane = 0;
    Item item;
    // Name and text of each attribute.
    std::vector<std::pair<std::string, std::string>> texts;
    // Their types and values, without the texts.
    std::vector<EventAttribute> attributes;
  };

  uint32_t Placed(const TimelineRecord& record, uint64_t number, Placement& placement) override;
  // Nothing to do yet: arrows are given to spans once these are written.
  void PlaceArrows() override {}
  void Advance(const TimelineRecord& record) override;
  absl::Status WriteStop(const TimelineRecord& record) override;
  absl::Status WriteHostCounter(const TimelineRecord& record) override;
  absl::Status WriteCounter(const TimelineRecord& record) override;
  absl::Status WriteEvent(const TimelineRecord& record, uint64_t number,
                          const Placement& placement) override;
  absl::Status EndBatch(const TimelineBatch& batch) override;

  // Writes the arrows that the batch completed.
  absl::Status WriteArrows();
  // Gives the flow to a span or, if that cannot take it any more, to an event without length.
  // Called at the end of each batch.
  absl::Status WriteFlow(const ArrowSpan& span, uint64_t at_ns, uint64_t flow,
                         std::string_view category);
  absl::Status WriteCounterAt(const TimelineRecord& record, const Place& place);
  // Writes the losses in the window, each at its time, on lines of their own.
  absl::Status WriteLosses();
  // Writes a span that waited, with the attributes of its stop, if these came.
  absl::Status EndWait(Waiting& waiting, const std::vector<EventAttribute>& stop);
  // Adds an event within the limits, and writes planes if the buffers are full.
  absl::Status Add(const Place& place, uint32_t line, const Item& item,
                   const std::vector<EventAttribute>& attributes);

  // Lists the instances and chooses their files' names.
  void AddHosts();
  // Returns the plane of a process, creating it within kPlanesMax.
  Place PlaceOf(uint32_t process);
  // Returns the row's lines, with this lane among them.
  Line& LineOf(uint32_t row, uint32_t lane);
  // Returns a line that is not a row of events.
  uint32_t SideLine(const Place& place, const std::string& name);
  // Returns the flow of the record's first chain, or 0.
  uint64_t FlowOf(const TimelineRecord& record);
  uint64_t SinceBegin(uint64_t ns) const { return ns > origin_ns_ ? ns - origin_ns_ : 0; }

  // Write buffered planes: as many as necessary, or one.
  absl::Status FlushPlanes();
  absl::Status FlushPlane(Host& host, PlaneBuffer& plane);
  absl::Status WriteTo(Host& host, std::string_view bytes);
  // Writes the rest of a host's file and closes it.
  absl::Status FinishHost(Host& host, const std::vector<std::string>& warnings);

  const Options options_;
  OutputFiles& files_;
  EventAttributes attributes_;
  // nullopt: no arrows.
  std::optional<FrameworkLinks> executions_;
  // Reference time of the profile's begin, which the times of all events count from.
  uint64_t origin_ns_ = 0;
  // Reference time of the last end of all events so far.
  uint64_t end_ns_ = 0;
  std::vector<Host> hosts_;
  std::map<std::string, uint32_t> host_of_;                          // by instance id
  std::vector<std::optional<Place>> places_;                         // by process
  std::vector<Line> lines_;                                          // by row
  std::map<std::pair<uint64_t, std::string>, uint32_t> side_lines_;  // by host and plane, name
  std::set<std::pair<uint64_t, uint32_t>> display_ids_;              // by host and plane
  // By host and plane, and order: where the search for a free display id begins.
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> latest_ids_;
  WaitingSpans<Waiting> waiting_;
  // Files that are open, and bytes in the buffers of all planes.
  size_t hosts_open_ = 0;
  size_t buffered_bytes_ = 0;
  uint64_t bytes_written_ = 0;
  // Spans longer than PlaneBuffer::kDurationMaxNs.
  uint64_t shortened_ = 0;
};

}  // namespace neurontrace
