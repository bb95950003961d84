// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/source/framework/trace_file.h"
#include "agent/source/framework/trace_file_stream.h"
#include "agent/source/shape_cache.h"
#include "agent/source/stream_writer.h"
#include "lib/trace/capture_spec.h"
#include "lib/trace/ids.h"
#include "lib/trace/remark.h"
#include "lib/trace/stream_cursor.h"
#include "lib/trace/worker_info.h"

namespace neurontrace {

// True for the names that PyTorch's and JAX's profilers give: trace.json, *.trace.json,
// framework_mapping_*.json (lib/trace/framework_mapping.h), and each with .gz. A file of such a
// name that is no trace is an error.
bool IsTraceFileName(std::string_view name);
// True for names of files that may be traces, which their content decides: *.json, *.json.gz and
// *.pb. Schedulers, launchers and people rename what profilers write.
bool MayBeTraceFileName(std::string_view name);

// The pid in a directory name `<instance>_pid_<pid>`, as the vendor's tools lay out their output;
// 0 where there is none. `path` is that of a file in the directory.
uint32_t PidOfDirectory(std::string_view path);

// The state of one file; false if it cannot be looked at or is no regular file.
bool LookAtFile(const std::string& path, FileState& state);

struct DirectoryListing {
  // Files that may be traces, by path relative to the directory. Links, pipes, sockets and devices
  // of such names are among them: opening one fails with the reason. At most
  // limits::kFrameworkDirectoryFilesMax, the first in the order of their paths; there are
  // `files_beyond` more.
  std::map<std::string, FileState> files;
  uint64_t files_beyond = 0;
  // Files of other names, and one of them.
  uint64_t others = 0;
  std::string other;
  // Folders that are too deep to be looked into, and one of them.
  uint64_t too_deep = 0;
  std::string deep_folder;
  // There are more than limits::kFrameworkDirectoryEntriesMax entries; further ones were not seen.
  bool is_truncated = false;
  // Nothing failed while it was listed: what is not in `files` is not there.
  bool is_whole = true;
};

// Lists a directory and its folders down to four levels, as deep as JAX puts files. No link is
// followed. A directory that is not there is empty.
DirectoryListing ListTraceFiles(const std::string& directory);

// Where framework trace files come from and who their streams belong to.
struct FrameworkFiles {
  std::string agent_id;
  std::string instance_id;
  std::string boot_id;
  std::vector<std::string> files;  // part of every capture
  std::string directory;           // files that come or change here during a capture; empty: none
};

// The framework files of one capture. Each content of a file is one stream: a file that is
// overwritten or replaced after it was read gives a second one, and a file that only got another
// name, or was packed, gives none. On the agent's sequence.
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
  enum class Fate : uint8_t {
    kWaiting,  // to be opened, or opened again as it changed
    kRead,     // all that it held when it was opened
    kNoTrace,  // passed over
    kTooMany,  // beyond the limit of a capture
    kFailed,   // cannot be opened
  };
  // A file that belongs to the capture.
  struct File {
    std::string path;
    std::string name;            // of its first stream
    FileState seen;              // when it was looked at last
    FileState opened;            // when it was opened last
    bool listed = false;         // on the command line: read at once, whatever it is like
    bool must_be_trace = false;  // by its name
    bool settled = false;        // did not change between two looks
    bool incomplete = false;     // when it was read through: to be read when it was waited for
    uint64_t changed_ns = 0;     // monotonic, when it was last seen to change
    uint64_t not_before_ns = 0;  // monotonic
    uint32_t openings = 0;
    Fate fate = Fate::kWaiting;
    std::string problem;                                    // of kNoTrace and kFailed
    std::unique_ptr<TraceFileStream> current;               // being looked through or read
    std::vector<std::unique_ptr<TraceFileStream>> streams;  // of each content that was read
    uint64_t read_before = 0;  // events, where all of it was stored before
  };

  // Whether a file is to be read, as another one may have the events of its session.
  enum class SessionPart : uint8_t {
    kOwn,      // to be read
    kTwice,    // the other one is read
    kWaiting,  // for the other one to be looked through
  };

  bool IsNews(const std::string& name, const FileState& state) const;
  void AddFile(std::string path, std::string name, const FileState& state, bool listed);
  void Observe(File& file, const FileState& state);

  bool StepFile(File& file);
  bool MayOpen(const File& file) const;
  bool WasWaitedFor(const File& file) const;
  void Open(File& file);
  void Begin(File& file);
  void BeginStream(File& file, StreamIdentity identity, const StreamCursor* cursor);
  void EndOvertaken(const StreamCursor& cursor);
  bool IsSameContent(const File& file);
  File* XSpaceOf(const File& file);
  SessionPart SessionPartOf(File& file);
  void TakeEnded(File& file);
  void OpenAgain(File& file);
  void GiveUp(File& file, Fate fate, std::string problem);
  StreamIdentity IdentityOf(const File& file, uint32_t version) const;
  const StreamCursor* FindCursor(const StreamIdentity& identity) const;

  std::vector<Remark> Remarks() const;
  void AddNoTraceRemark(std::vector<Remark>& remarks) const;

  const CaptureId capture_id_;
  const Surroundings surroundings_;
  std::vector<StreamCursor> cursors_;
  const bool is_over_;
  const bool came_late_;                      // the capture was running before this agent knew it
  const uint64_t started_realtime_ns_;        // as its id says
  std::map<std::string, FileState> before_;   // what was there when the capture began
  std::map<std::string, File> files_;         // by name
  DirectoryListing listing_;                  // the latest, without its files
  std::map<uint64_t, std::string> contents_;  // names of streams by the marks of their contents
  std::vector<std::unique_ptr<StreamWriter>> overtaken_;  // streams of contents that are gone
  uint64_t streams_begun_ = 0;
  std::vector<Remark> remarks_;
  bool stopping_ = false;
  uint64_t stopped_ns_ = 0;  // monotonic
};

}  // namespace neurontrace
