// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/source/framework/trace_directory.h"
#include "agent/source/framework/trace_file_stream.h"
#include "agent/source/shape_cache.h"
#include "agent/source/stream_writer.h"
#include "trace/capture_spec.h"
#include "trace/ids.h"
#include "trace/stream_cursor.h"
#include "trace/worker_info.h"

namespace neurontrace {

// Where framework trace files come from and who their streams belong to.
struct FrameworkFiles {
  std::string agent_id;
  std::string instance_id;
  std::string boot_id;
  std::vector<std::string> files;  // part of every capture
  std::string directory;           // files that come or change here during a capture; empty: none
};

// The framework files of one capture. On the agent's sequence.
class FrameworkCapture {
 public:
  // What its streams need; all of it outlives the capture.
  struct Surroundings {
    const FrameworkFiles& files;
    const Clock& clock;
    ChunkSink& sink;
    AgentSourceMetrics& metrics;
    ShapeCache& shapes;
  };

  // `is_over`: only the files of `cursors` belong to it, as it has been told to stop.
  FrameworkCapture(const CaptureId& capture_id, const Surroundings& surroundings,
                   std::span<const StreamCursor> cursors, bool is_over);

  // Files of the directory count for as long as the capture has not been stopped, and are waited
  // for a little longer where they are being written at that moment.
  void Stop();

  // Looks at the directory; to be called twice a second.
  void Look();
  // One piece of work; false if there is none now.
  bool Step();

  // Closes the chunks that are open.
  void Flush();
  bool stopping() const { return stopping_; }
  bool finished() const;
  bool has_files() const { return !files_.empty(); }
  CaptureWorkerStatus status() const;

 private:
  // A file that belongs to the capture.
  struct File {
    std::string path;
    std::string name;          // of its stream
    FileState seen;            // when it was looked at last
    bool listed = false;       // on the command line: read at once, whatever it is like
    bool settled = false;      // did not change between two looks
    uint64_t changed_ns = 0;   // monotonic, when it was last seen to change
    uint64_t read_before = 0;  // events, where all of it was stored before
    std::unique_ptr<TraceFileStream> stream;  // once it is being looked through
  };

  bool IsNews(const std::string& name, const FileState& state) const;
  void AddFile(std::string path, std::string name, const FileState& state, bool listed);
  bool StepFile(File& file);
  void Begin(File& file);

  const CaptureId capture_id_;
  const Surroundings surroundings_;
  std::vector<StreamCursor> cursors_;
  const bool is_over_;
  const bool came_late_;                     // the capture was running before this agent knew it
  const uint64_t started_realtime_ns_;       // as its id says
  std::map<std::string, FileState> before_;  // what was there when the capture began
  std::map<std::string, File> files_;        // by name
  bool directory_truncated_ = false;
  bool too_many_ = false;
  bool stopping_ = false;
  uint64_t stopped_ns_ = 0;  // monotonic
};

}  // namespace neurontrace
