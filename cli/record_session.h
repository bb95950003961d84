// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/signalfd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/command.h"
#include "cli/daemon_process.h"
#include "cli/process_tree.h"
#include "cli/record_programs.h"
#include "cli/scratch_directory.h"
#include "cli/traced_command.h"
#include "lib/base/unique_fd.h"

namespace neurontrace::cli {

// The options of `record` after parsing.
struct RecordOptions {
  std::vector<std::string> command;
  v1::CaptureSpec spec;
  std::string path;                 // of the trace
  v1::ExportRequest request;        // without the capture
  std::string directory;            // the private daemons have their directories in it
  std::string framework_directory;  // empty: none
  ProgramPlaces places;
  bool keep_store = false;
  bool quiet = false;
  bool json = false;
};

// One run of `neurontrace record`: a private aggregator and agent, a capture, the command, the
// trace. Constructed on the program's first thread while there is no other, because it forks; its
// functions are called in the order of their declaration on that thread. Nothing of it survives:
// the daemons end with it, or are killed by the kernel if the program is.
class RecordSession {
 public:
  // Both must outlive it.
  RecordSession(Context& context, const RecordOptions& options);
  ~RecordSession();

  // Does everything up to the recording capture; then the command begins. An error's code
  // determines the exit code, see RecordExitCode. Returns OK also if a signal has ended the command
  // meanwhile.
  absl::Status Begin();
  // Forwards signals until the command has ended.
  void AwaitCommand();
  // Stops the capture, writes the trace and prints the result on stderr: as text, or as one line of
  // JSON after everything else.
  void Conclude();
  // Prints the result if Begin failed.
  void ReportFailure(const absl::Status& status);

  int exit_code() const { return exit_code_; }

 private:
  // Starts the aggregator, then the agent, and sets the context's aggregator. Fails with the error
  // of the daemon that did not start.
  absl::Status StartDaemons(const RecordPrograms& programs, const std::string& socket);
  // Starts the capture and waits until it has begun. Fails with UNAVAILABLE.
  absl::Status StartCapture();
  // Waits until the agent has connected. Fails with UNAVAILABLE after the start timeout.
  absl::Status WaitForAgent();
  absl::Status WaitForBegin();
  // Lets the command begin. Fails with FAILED_PRECONDITION if it cannot be executed.
  absl::Status Release();
  // Returns whether the command has ended, which before its release only a signal causes.
  bool IsAbandoned();
  // Handles one signal that was sent to this program.
  void Handle(const signalfd_siginfo& signal);
  // Remembers the first daemon that has ended, for the explanation of an empty trace.
  void RecordDaemons();
  // Examines the command's processes from time to time, to explain later why there was no worker.
  void ScanProcesses();
  // Asks the aggregator whether the capture has a worker; false if it does not answer soon.
  bool HasWorkers();
  // Stops the capture and waits until its data is stored. Fails with UNAVAILABLE if the aggregator
  // ends.
  absl::Status StopCapture();
  // Prints a message on stderr, unless --quiet or JSON was asked for.
  void PrintMessage(const std::string& text) const;
  // Exports and prints the result.
  void Report();
  // Returns the reasons for which nothing was recorded, and sets `problem_`.
  std::vector<std::string> NoRecordingReasons();
  void PrintWhyNothing();
  void PrintJson() const;
  // Keeps the scratch directory and prints how to export from it later.
  void PreserveStore(const std::string& why);

  Context& context_;
  const RecordOptions& options_;
  int exit_code_ = kExitRecordFailed;
  // The mask before the constructor blocked signals; the command gets it.
  sigset_t old_mask_;
  // A signalfd(2) of SIGCHLD and the forwarded signals.
  UniqueFd signals_;
  std::string program_;  // the command's file
  std::unique_ptr<ScratchDirectory> directory_;
  std::unique_ptr<TracedCommand> command_;
  std::unique_ptr<DaemonProcess> aggregator_;
  std::unique_ptr<DaemonProcess> agent_;
  SystemHostView host_;
  std::unique_ptr<ProcessTree> tree_;
  // The time of the next look at processes; 0: none.
  int64_t scan_at_ns_ = 0;  // monotonic
  // Doubles after each look.
  int64_t scan_pause_ns_;
  std::string lost_daemon_;  // the first one that ended too early
  v1::Capture capture_;
  bool has_kept_store_ = false;
  // For JSON.
  std::string exported_;  // an ExportDone; empty: there was no export
  std::string problem_;
  std::vector<std::string> reasons_;  // of the problem, with what to do about it
};

}  // namespace neurontrace::cli
