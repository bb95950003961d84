// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/trace/limits.h"

// Limits of the trace, XSpace and mapping files of frameworks, which any program of a user may have
// written.
namespace neurontrace::limits {

// Times of one recording are seldom further apart than this. The largest such group among the first
// times of a file shows when it was recorded.
inline constexpr uint64_t kFrameworkTimeGroupNs = uint64_t{86'400} * 1'000'000'000;
// An event whose time is further than this from the middle of that group has no usable time (a
// decode loss, reason "no time"), and a duration that ends later is not used. Devices that never
// finished write 0, which is decades before all other times.
inline constexpr uint64_t kFrameworkTimeSpreadNs = uint64_t{10} * 366 * 86'400 * 1'000'000'000;
// How many times of a file, 0 not counted, are sampled for that.
inline constexpr size_t kFrameworkTimesSampledMax = 64;

// Spans of one file that have begun with B or b and whose end has not been read, and the bytes of
// their names and categories. Beyond: the older half is given up (shown as open, their ends as ends
// without a begin), which is counted.
inline constexpr size_t kFrameworkOpenSpansMax = 65'536;
inline constexpr size_t kFrameworkOpenSpanBytesMax = size_t{16} << 20;
// Files of a watched directory whose names may be those of traces; each capture remembers their
// state. Beyond: the last ones in the order of their paths are ignored, which is counted.
inline constexpr size_t kFrameworkDirectoryFilesMax = 16'384;
// Contents of one file that are read as it is overwritten repeatedly, and how often it is opened
// for that. Beyond: later contents are not read, which is reported.
inline constexpr uint32_t kFrameworkVersionsPerFileMax = 16;
inline constexpr uint32_t kFrameworkOpeningsPerFileMax = 64;

// Entries of a mapping file, beyond which its rest is a decode loss, and operations of one entry,
// beyond which the entry is a decode loss.
inline constexpr uint64_t kMappingEntriesMax = 1u << 20;
inline constexpr size_t kMappingOperationsPerEntryMax = 1'024;

// Names of events and stats that are kept for one plane of an XSpace. Events with further names are
// decode losses.
inline constexpr size_t kXSpaceNameBytesMax = size_t{32} << 20;

// Traces on demand. Traces of one instance in one capture: of each worker, for each of a few
// frameworks. Beyond: the further ones are not listed, which a remark counts.
inline constexpr size_t kFrameworksPerCaptureMax = 4;
inline constexpr size_t kFrameworkTracesMax = 2 * size_t{kWorkersPerAgentMax};
// Steps of one trace, as PyTorch keeps all of it in memory until it writes the file.
inline constexpr uint32_t kFrameworkStepsMax = 10'000;
// Aggregator: how far ahead a capture with framework traces is planned. A worker asks for orders
// every five seconds, and needs time to prepare its profiler.
inline constexpr uint64_t kFrameworkLeadNs = 7'000'000'000;
// Agent: how long a trace file is waited for after the capture and its trace have ended. A large
// trace takes seconds to be written.
inline constexpr uint64_t kFrameworkFileWaitNs = 30'000'000'000;

// Agent, requests of Kineto's clients, which any member of the group of its directory may send.
// Longer datagrams and lists of processes are refused, further clients are not answered; both are
// counted.
inline constexpr size_t kKinetoDatagramBytesMax = 4'096;
inline constexpr size_t kKinetoPidsMax = 256;
inline constexpr size_t kKinetoClientsMax = 4 * size_t{kWorkersPerAgentMax};
// Entries of --kineto-dir among which sockets of ended workers are looked for at a time, to remove
// them. Beyond: they wait until there are fewer.
inline constexpr size_t kKinetoSocketsExaminedMax = 2 * kKinetoClientsMax;
// A client that has not asked for this long has ended.
inline constexpr uint64_t kKinetoSilenceNs = 16'000'000'000;

// Agent, calls of XLA's ProfilerService in workers, which any program may pretend to be. A trace is
// in the worker's memory, then in the agent's: a longer one is not asked for.
inline constexpr uint64_t kXlaDurationNsMax = uint64_t{60} * 1'000'000'000;
// One answer, and all answers of an agent that are under way. Each worker of a capture gets an
// equal share, and a larger answer is refused; nobody is asked if the share is below the minimum.
inline constexpr size_t kXlaAnswerBytesMax = size_t{128} << 20;
inline constexpr size_t kXlaAnswersBytesMax = size_t{256} << 20;
inline constexpr size_t kXlaAnswerBytesMin = size_t{2} << 20;
// Open files of a worker, and listening sockets of its machine, among which the port is searched
// for. Beyond: the worker is not asked.
inline constexpr size_t kXlaDescriptorsMax = 16'384;
inline constexpr size_t kXlaSocketsMax = 16'384;

static_assert(kXlaAnswerBytesMax <= INT32_MAX, "a limit of gRPC's messages is an int");
static_assert(kMappingOperationsPerEntryMax * 21 + 2 <= kStringBytesMax,
              "numbers of 20 signs and their commas must fit into an attribute");

}  // namespace neurontrace::limits
