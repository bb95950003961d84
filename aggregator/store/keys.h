// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lib/trace/ids.h"

// Keys of the column families. Numbers are big endian, so that RocksDB's order of keys is the order
// of what they name. docs/formats/store.md lists them byte by byte; a key, once written, keeps its
// form for ever. All functions are pure; any thread.
namespace neurontrace::keys {

// `captures`: the capture id. `streams`, `chunks`, `chunk_index` and `clock_models` begin with it.
std::string Capture(const CaptureId& capture);

// `streams`: capture id, stream number u32.
std::string Stream(const CaptureId& capture, uint32_t stream);
// `chunks`: capture id, stream number u32, sequence u64.
std::string Chunk(const CaptureId& capture, uint32_t stream, uint64_t sequence);
// `chunk_index`: capture id, stream number u32, last timestamp u64, sequence u64.
std::string ChunkIndex(const CaptureId& capture, uint32_t stream, uint64_t last_timestamp_ns,
                       uint64_t sequence);
// `workers`: instance id and boot id, each after its length (u16), pid u32, start time u64 in clock
// ticks since boot, container id after its length. All workers of an instance share WorkerPrefix.
std::string Worker(const WorkerIdentity& worker);
std::string WorkerPrefix(std::string_view instance_id);
// `clock_models`: capture id, version u32, row u32. All rows of one version share
// ClockModelVersion.
std::string ClockModel(const CaptureId& capture, uint32_t version, uint32_t row);
std::string ClockModelVersion(const CaptureId& capture, uint32_t version);
// `digests`: capture id, stream number u32, level u8, first sequence u64.
std::string Digest(const CaptureId& capture, uint32_t stream, uint8_t level, uint64_t first);

// Returns a key greater than every key with this prefix. It is the smallest such key, unless all
// bytes of the prefix are 0xff: then it is only greater than the keys of the forms above. To
// continue behind a prefix, use SeekPastPrefix of database.h.
std::string PrefixEnd(std::string_view prefix);

// The parts of a key. Parse functions return nullopt for a key of another length; every key of the
// right length has parts.
struct StreamKey {
  CaptureId capture;
  uint32_t stream = 0;
};
struct ChunkKey {
  CaptureId capture;
  uint32_t stream = 0;
  uint64_t sequence = 0;
};
struct ChunkIndexKey {
  CaptureId capture;
  uint32_t stream = 0;
  uint64_t last_timestamp_ns = 0;
  uint64_t sequence = 0;
};
struct ClockModelKey {
  CaptureId capture;
  uint32_t version = 0;
  uint32_t row = 0;
};
struct DigestKey {
  CaptureId capture;
  uint32_t stream = 0;
  uint8_t level = 0;
  uint64_t first = 0;
};
std::optional<StreamKey> ParseStream(std::string_view key);
std::optional<ChunkKey> ParseChunk(std::string_view key);
std::optional<ChunkIndexKey> ParseChunkIndex(std::string_view key);
std::optional<ClockModelKey> ParseClockModel(std::string_view key);
std::optional<DigestKey> ParseDigest(std::string_view key);

}  // namespace neurontrace::keys
