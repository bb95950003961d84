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

#include "agent/source/framework/on_demand/on_demand_capture.h"
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

// Returns true for the names that PyTorch's and JAX's profilers give: trace.json, *.trace.json,
// framework_mapping_*.json (lib/trace/framework_mapping.h), and each with .gz. A file of such a
// name that is no trace is an error; one of another name is skipped. Pure.
bool IsTraceFileName(std::string_view name);
// Returns true for names of files that may be traces, which their content decides: *.json,
// *.json.gz and *.pb. Schedulers, launchers and people rename what profilers write. Pure.
bool CanBeTraceFileName(std::string_view name);

// Returns the pid in a directory name `<instance>_pid_<pid>`, as the vendor's tools lay out their
// output; 0 if there is none. `path` is that of a file in the directory. Pure.
uint32_t PidOfDirectory(std::string_view path);

// Sets `state` to that of a file; returns false if it cannot be examined or is not a regular file.
// Follows links. Blocks for the disk.
bool InspectFile(const std::string& path, FileState& state);

// The result of ListTraceFiles. Used for one look at the watched directory.
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
  // Nothing failed while it was listed: a file that is not in `files` does not exist.
  bool is_whole = true;
};

// Lists a directory and its folders down to four levels, as deep as JAX puts files. Follows no
// link. A directory that does not exist is empty. Blocks for the disk.
DirectoryListing ListTraceFiles(const std::string& directory);

// Where framework trace files come from, and the identity of their streams. Owned by
// FrameworkSource; the same for all captures.
struct FrameworkFiles {
  std::string agent_id;
  std::string instance_id;
  std::string boot_id;
  std::vector<std::string> files;  // part of every capture
  std::string directory;           // files that come or change here during a capture; empty: none
};

// The framework trace files of one capture. Each content of a file is one stream: a file that is
// overwritten or replaced after it was read gives a second one; a file that was only renamed or
// compressed gives none. Problems with a file become remarks and losses of its stream, and details
// of the status. On the agent's sequence; docs/operator/framework_files.md describes the rules.
// Owned by FrameworkSource, which calls Look and Step.
class FrameworkCapture {
 public:
  // What the streams need; all of it outlives the capture.
  struct CaptureEnvironment {
    const FrameworkFiles& files;
    const Clock& clock;
    ChunkSink& sink;
    AgentSourceMetrics& metrics;
    ShapeCache& shapes;
  };

  // Starts the capture, for which `on_demand` has asked frameworks, or null. With `is_over` it has
  // already been ordered to stop, and only the files of `cursors` belong to it.
  FrameworkCapture(const CaptureId& capture_id, const CaptureEnvironment& capture_environment,
                   std::span<const StreamCursor> cursors, bool is_over,
                   std::unique_ptr<OnDemandCapture> on_demand);

  // Ends the capture: files that come later do not belong to it, but for those of traces on demand
  // that are still awaited. Files that are being written at this moment are waited for a little
  // longer.
  void Stop();

  // Lists the directory and takes note of new and changed files; to be called twice a second.
  void Poll();
  // Does one bounded piece of work; returns false if there is none now.
  bool Step();

  // Closes the chunks that are open.
  void Flush();
  bool stopping() const { return stopping_; }
  // Returns true once it was stopped, every file is dealt with, and every chunk is stored or lost.
  bool finished() const;
  // Returns false while no file belongs to the capture and no framework was asked, so that nothing
  // is reported.
  bool has_files() const { return !files_.empty() || on_demand_ != nullptr; }
  // Returns the state, counts and remarks of all files together, as one framework "worker" of the
  // instance.
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
    std::string name;  // of its first stream
    // The two states differ while the file changes after it was opened.
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

  // Whether a file is to be read, as JAX writes one session in two formats.
  enum class SessionPart : uint8_t {
    kOwn,      // to be read
    kTwice,    // the other one is read
    kWaiting,  // for the other one to be looked through
  };

  // Returns whether a file of the directory that has not been seen before may belong to the
  // capture now.
  bool TakesFile(const std::string& name) const;
  // Returns whether a file of the directory came or changed during the capture.
  bool IsNews(const std::string& name, const FileState& state) const;
  // Adds a file to the capture, unless the capture is over and no stream of the file exists.
  void AddFile(std::string path, std::string name, const FileState& state, bool listed);
  // Takes the state that a look has found, and lets a file that changed be read again.
  void Observe(File& file, const FileState& state);

  // Advances one file by one step; returns false if it waits for something.
  bool StepFile(File& file);
  // Returns whether the file may be opened: once two looks have found it unchanged.
  bool CanOpen(const File& file) const;
  // Returns whether the file has not changed for long enough to be read although it looks
  // incomplete.
  bool WasWaitedFor(const File& file) const;
  // Open a file, choose its stream, and start to read it.
  void Open(File& file);
  void Begin(File& file);
  void BeginStream(File& file, StreamIdentity identity, const StreamCursor* cursor);
  // Ends a stream of an earlier run of the agent whose content no longer exists, with a loss.
  void EndOvertaken(const StreamCursor& cursor);
  // Returns whether this content has been read already, under this or another name.
  bool IsSameContent(const File& file);
  File* XSpaceOf(const File& file);
  // Decides which of the two formats of a JAX session is read.
  SessionPart SessionPartOf(File& file);
  // Handles that the current stream has handed over everything.
  void HandleEnded(File& file);
  void Reopen(File& file);
  // Ends the work on a file with this fate.
  void GiveUp(File& file, Fate fate, std::string problem);
  StreamIdentity IdentityOf(const File& file, uint32_t version) const;
  // Returns null if no earlier run of the agent has stored this stream.
  const StreamCursor* FindCursor(const StreamIdentity& identity) const;

  // Returns what is to be said of files that have no stream.
  std::vector<Remark> Remarks() const;
  void AddNoTraceRemark(std::vector<Remark>& remarks) const;

  const CaptureId capture_id_;
  const CaptureEnvironment capture_environment_;
  const std::unique_ptr<OnDemandCapture> on_demand_;  // null: no framework was asked
  std::vector<StreamCursor> cursors_;
  const bool is_over_;
  const bool came_late_;                     // the capture was running before this agent knew it
  const uint64_t started_realtime_ns_;       // as its id says
  std::map<std::string, FileState> before_;  // what was there when the capture began
  std::map<std::string, File> files_;        // by name
  DirectoryListing listing_;                 // the latest, without its files
  // Marks of contents that have a stream, also those of earlier runs of the agent.
  std::map<uint64_t, std::string> contents_;  // names of streams by the marks of their contents
  std::vector<std::unique_ptr<StreamWriter>> overtaken_;  // streams of contents that are gone
  uint64_t streams_begun_ = 0;
  std::vector<Remark> remarks_;
  // After Stop no new file belongs to the capture; known ones are read to their ends.
  bool stopping_ = false;
  uint64_t stopped_ns_ = 0;  // monotonic
};

}  // namespace neurontrace
