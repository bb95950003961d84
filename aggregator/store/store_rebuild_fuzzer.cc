// SPDX-License-Identifier: Apache-2.0
// A whole store with rows that it cannot have written in any family, and with files that went
// through something: it opens, after one rebuild at most; all of it can be listed and read to an
// end; a store that was rebuilt opens without another one; and of a capture that is deleted nothing
// is left.
//
// Steps follow each other, each a byte and what it needs: rows, then files.
#include <rocksdb/env.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aggregator/store/database.h"
#include "aggregator/store/keys.h"
#include "aggregator/store/store.h"
#include "aggregator/store/store_check.h"
#include "aggregator/store/store_test_support.h"
#include "lib/base/fuzz_input.h"
#include "lib/trace/clock_evidence_codec.h"

namespace neurontrace {
namespace {

constexpr char kPath[] = "/db";
constexpr size_t kStepsMax = 40;
constexpr uint8_t kCaptures = 3;

// Replaces ingest's validation: a header of three bytes, as these are written below.
absl::StatusOr<ReceivedChunk> Examine(std::string_view header, std::string_view columns,
                                      uint32_t crc32c) {
  if (header.size() != 3) return absl::InternalError("no chunk");
  const auto at = [header](size_t i) { return static_cast<uint8_t>(header[i]); };
  ReceivedChunk chunk = TestChunk(at(0), TestStream(at(1)), at(2));
  chunk.header_bytes = std::string(header);
  if (chunk.columns != columns || chunk.crc32c != crc32c) return absl::InternalError("damaged");
  return chunk;
}

// In memory. RocksDB's own does not tell directories. Files of options are refused, which RocksDB
// bears: nobody reads them here, and writing them took three quarters of each input's time.
class MemoryDisk final : public rocksdb::EnvWrapper {
 public:
  MemoryDisk() : EnvWrapper(rocksdb::NewMemEnv(Default())), memory_(target()) {}
  rocksdb::Status IsDirectory(const std::string& path, bool* is_directory) override {
    const std::string name = path.substr(path.rfind('/') + 1);
    *is_directory = name == "artifacts" || name == "rebuilding" || name.starts_with("damaged-");
    return rocksdb::Status::OK();
  }
  rocksdb::Status NewWritableFile(const std::string& path,
                                  std::unique_ptr<rocksdb::WritableFile>* file,
                                  const rocksdb::EnvOptions& options) override {
    if (path.find("/OPTIONS-") != std::string::npos) return rocksdb::Status::NotSupported();
    return EnvWrapper::NewWritableFile(path, file, options);
  }

 private:
  const std::unique_ptr<rocksdb::Env> memory_;
};

class DamagedStore {
 public:
  // A copy of `like`'s files.
  explicit DamagedStore(DamagedStore* like);

  absl::StatusOr<std::unique_ptr<Store>> Open() {
    return Store::Open(kPath, {.env = &env_, .examine = Examine});
  }
  void Fill();
  void DamageRows(FuzzInput& input);
  void DamageFiles(FuzzInput& input);
  bool CanBeOpened();
  bool AreGone(const std::vector<CaptureId>& ids);

 private:
  static std::string KeyOf(FuzzInput& input);
  void DamageRow(FuzzInput& input, Database& database);
  void PutRow(FuzzInput& input, Database& database);
  std::vector<std::string> Files();

  MemoryDisk env_;
};

std::vector<std::string> DamagedStore::Files() {
  std::vector<std::string> names;
  env_.GetChildren(kPath, &names).PermitUncheckedError();
  std::ranges::sort(names);
  return names;
}

DamagedStore::DamagedStore(DamagedStore* like) {
  if (like == nullptr) return;
  CheckPromise(env_.CreateDirIfMissing(kPath).ok(), "a directory can be made");
  for (const std::string& name : like->Files()) {
    const std::string path = std::string(kPath) + "/" + name;
    bool is_directory = false;
    std::string bytes;
    if (!env_.IsDirectory(path, &is_directory).ok() || is_directory || name == "LOCK") continue;
    CheckPromise(rocksdb::ReadFileToString(&like->env_, path, &bytes).ok() &&
                     rocksdb::WriteStringToFile(&env_, bytes, path).ok(),
                 "a file can be copied");
  }
}

// Something in every family but one.
void DamagedStore::Fill() {
  auto opened = Open();
  CheckPromise(opened.ok(), "an empty store opens");
  Store& store = **opened;
  for (uint8_t n = 1; n <= kCaptures; ++n) {
    CheckPromise(store.captures().Put(TestCapture(n), false).ok(), "a capture can be put");
  }
  for (uint8_t i = 0; i < 8; ++i) {
    const uint8_t capture = 1 + i / 6;
    const uint8_t core = i / 3 % 2;
    const uint8_t sequence = i % 3;
    ReceivedChunk chunk = TestChunk(capture, TestStream(core), sequence);
    chunk.header_bytes = {static_cast<char>(capture), static_cast<char>(core),
                          static_cast<char>(sequence)};
    CheckPromise(store.chunks().PutBatch({&chunk, 1}).ok(), "a chunk can be put");
  }
  store.inventory().PutAgent({.info = {.agent_id = "agent-a"}}).IgnoreError();
  store.inventory().PutWorker({.info = {.identity = TestStream(0).worker}}).IgnoreError();
  store.clocks().ContinueEpoch("boot-1", 5, 6).status().IgnoreError();
  store.clocks().Put({{{"i-a", "boot-1"}, 100, EncodeClockEvidence({})}}).IgnoreError();
  store.clock_models().Put(TestCaptureId(1), {1, "header", {"row"}}).IgnoreError();
}

std::string DamagedStore::KeyOf(FuzzInput& input) {
  const uint8_t form = input.Byte();
  const CaptureId id = TestCaptureId(form / 8);
  switch (form % 8) {
    case 0:
      return keys::Capture(id);
    case 1:
      return keys::Stream(id, input.Byte());
    case 2:
      return keys::Chunk(id, input.Byte(), input.Number());
    case 3: {
      const uint8_t stream = input.Byte();
      const uint64_t time_ns = input.Number();
      return keys::ChunkIndex(id, stream, time_ns, input.Number());
    }
    case 4:
      return keys::ClockModel(id, input.Byte(), input.Byte());
    case 5:
      return std::string(input.Byte() % 40, '\xff');
    default:
      return std::string(input.Text(input.Byte() % 64));
  }
}

void DamagedStore::PutRow(FuzzInput& input, Database& database) {
  const auto family = static_cast<Family>(input.Byte() % kFamilyCount);
  const std::string key = KeyOf(input);
  database.Put(family, key, input.Text(input.Byte()), false).IgnoreError();
}

// One of those that are there: another byte in its value or key, less of it, or none.
void DamagedStore::DamageRow(FuzzInput& input, Database& database) {
  const auto family = static_cast<Family>(input.Byte() % kFamilyCount);
  const uint8_t number = input.Byte();
  const uint8_t how = input.Byte();
  std::vector<std::pair<std::string, std::string>> rows;
  database
      .ForEach(family, "",
               [&](std::string_view key, std::string_view value) {
                 rows.emplace_back(key, value);
                 return absl::OkStatus();
               })
      .IgnoreError();
  if (rows.empty()) return;
  auto [key, value] = rows[number % rows.size()];
  if (how % 4 == 3) {
    database.db().Delete({}, database.family(family), key).PermitUncheckedError();
    return;
  }
  std::string& bytes = how % 4 == 0 ? key : value;
  const size_t at = bytes.empty() ? 0 : input.Byte() % bytes.size();
  if (how % 4 == 2) {
    bytes.resize(at);
  } else if (!bytes.empty()) {
    bytes[at] = static_cast<char>(input.Byte());
  }
  database.Put(family, key, value, false).IgnoreError();
}

void DamagedStore::DamageRows(FuzzInput& input) {
  auto database = Database::Open(kPath, &env_);
  CheckPromise(database.ok(), "a closed store opens");
  const size_t steps = input.Byte() % kStepsMax;
  for (size_t i = 0; i < steps && !input.empty(); ++i) {
    if (input.Byte() % 2 == 0) {
      PutRow(input, **database);
    } else {
      DamageRow(input, **database);
    }
  }
  if (input.Byte() % 2 == 0) (*database)->Flush().IgnoreError();
}

void DamagedStore::DamageFiles(FuzzInput& input) {
  const std::vector<std::string> names = Files();
  while (!input.empty() && !names.empty()) {
    const std::string name = std::string(kPath) + "/" + names[input.Byte() % names.size()];
    const uint8_t how = input.Byte();
    std::string bytes;
    if (!rocksdb::ReadFileToString(&env_, name, &bytes).ok()) continue;
    if (how % 4 == 0 || bytes.empty()) {
      env_.DeleteFile(name).PermitUncheckedError();
      continue;
    }
    const size_t at = (input.Byte() * size_t{256} + input.Byte()) % bytes.size();
    if (how % 4 == 1) {
      bytes.resize(at);
    } else {
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << how / 4 % 8));
    }
    rocksdb::WriteStringToFile(&env_, bytes, name).PermitUncheckedError();
  }
}

bool DamagedStore::CanBeOpened() {
  const auto report = CheckStore(kPath, &env_, {.examine = Examine});
  if (!report.ok()) return false;
  for (const StoreFault& fault : report->faults) {
    CheckPromise(!fault.ToString().empty(), "a fault has a description");
  }
  return true;
}

bool DamagedStore::AreGone(const std::vector<CaptureId>& ids) {
  const auto database = Database::Open(kPath, &env_);
  CheckPromise(database.ok(), "a closed store opens");
  const auto nothing = [](std::string_view, std::string_view) {
    return absl::InternalError("something");
  };
  for (const CaptureId& id : ids) {
    for (const Family family : {Family::kCaptures, Family::kStreams, Family::kChunks,
                                Family::kChunkIndex, Family::kClockModels}) {
      if (!(*database)->ForEach(family, keys::Capture(id), nothing).ok()) return false;
    }
  }
  return true;
}

void ReadCapture(Store& store, const CaptureId& id) {
  CheckPromise(store.captures().Get(id).ok(), "a capture that is listed is there");
  store.clock_models().Newest(id).status().IgnoreError();
  store.artifacts().List(id).status().IgnoreError();
  store.chunks().Cursors(id, "agent-a").status().IgnoreError();
  const CaptureReader reader = store.OpenSnapshot(id);
  reader.Sum().status().IgnoreError();
  const auto streams = reader.Streams();
  if (!streams.ok()) return;
  for (const StreamRecord& stream : *streams) {
    const StreamReader chunks = reader.Stream(stream.number);
    StoredChunk chunk;
    for (auto index = chunks.Index(); index.Valid(); index.Next()) {
      chunks.ReadChunk(index.entry().sequence, chunk).IgnoreError();
    }
  }
}

void Fuzz(FuzzInput& input) {
  static DamagedStore* const whole = [] {
    auto* const made = new DamagedStore(nullptr);
    made->Fill();
    return made;
  }();
  DamagedStore damaged_store(whole);
  damaged_store.DamageRows(input);
  damaged_store.DamageFiles(input);
  auto store = damaged_store.Open();
  // A newer version's, as far as it can tell.
  if (absl::IsFailedPrecondition(store.status())) return;
  if (!store.ok()) fprintf(stderr, "%s\n", store.status().ToString().c_str());
  CheckPromise(store.ok(), "it opens, after one rebuild at most");
  const bool was_rebuilt = std::ranges::any_of(
      (*store)->notes(), [](const std::string& note) { return note.starts_with("rebuilt:"); });
  if (was_rebuilt) {
    store->reset();
    // Records that can be read and lie are faults still.
    CheckPromise(damaged_store.CanBeOpened(), "a rebuilt store can be examined");
    store = damaged_store.Open();
    CheckPromise(store.ok() && (*store)->notes().empty(), "a rebuild is done once");
  }
  (*store)->inventory().Agents().status().IgnoreError();
  if (const auto hosts = (*store)->clocks().Hosts(); hosts.ok()) {
    for (const HostBoot& host : *hosts) (*store)->clocks().Read(host, {}).status().IgnoreError();
  }
  const std::vector<CaptureId> ids = (*store)->captures().Ids();
  for (const CaptureId& id : ids) ReadCapture(**store, id);
  for (const CaptureId& id : ids) {
    CheckPromise((*store)->DeleteCapture(id).ok(), "a capture can be deleted");
  }
  store->reset();
  CheckPromise(damaged_store.AreGone(ids), "nothing of it is left");
}

}  // namespace
}  // namespace neurontrace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  spdlog::set_level(spdlog::level::off);
  neurontrace::FuzzInput input(data, size);
  neurontrace::Fuzz(input);
  return 0;
}
